"""The stream: killed after every step, it loses and repeats nothing, and its tables are
those of the batch audit over the same input; also from a live broker."""

import json
import time

import paho.mqtt.client as paho
import pytest
from pyspark.errors import StreamingQueryException

from host_tests.fleet.captures import simulated
from host_tests.fleet.written import assert_same, rows
from host_tests.patience import SECONDS
from tools.fleet.live.spool import spool_files
from tools.fleet.report import timeline
from tools.fleet.simulate.run import Plan, write
from tools.fleet.spark import job, sites, stream

_BUCKETS = 2
_PLAN = Plan(devices=6, readings=150, seed=11, fault_rate=0.2, wire_rate=0.2, gap_rate=0.03)


class _Killed(Exception):
    """Stands for SIGKILL: nothing after it is done."""


@pytest.fixture(scope="module")
def streaming(spark):
    """The session, with the streaming sources."""
    for source in stream.sources():
        spark.dataSource.register(source)
    return spark


def _query(spark, target, out, name, take=None, **options):
    reader = spark.readStream.format(name).options(**{"buckets": _BUCKETS, **options})
    writer = reader.load().writeStream.foreachBatch(take or target.take)
    return writer.option("checkpointLocation", str(out / "_stream" / "checkpoint")).start()


def _batch(spark, folder, out):
    job.run(spark, folder, out, job.Options(buckets=_BUCKETS))


def _dying(target, name, after):
    # The method that dies before or after it did its work, the first time only.
    function = getattr(target, name)

    def run(*args):
        if after:
            function(*args)
        raise _Killed(name)

    return run


def _record_before(data, limit):
    # Where the last whole record of a pcap file ends, up to the byte `limit`.
    place = 24
    while (behind := place + 16 + int.from_bytes(data[place + 8 : place + 12], "little")) <= limit:
        place = behind
    return place


def test_stream_when_killed_at_every_step_then_its_tables_are_those_of_a_batch(
    streaming, tmp_path
):
    folder, out = tmp_path / "captures", tmp_path / "out"
    (folder / "north").mkdir(parents=True)
    data, _ = simulated(_PLAN)
    growing = folder / "north" / "a.pcap"
    size = 0
    steps = [("_with_state", False), ("_write_packets", False), ("_write_packets", True)]
    for number, (name, after) in enumerate(steps, 1):
        size = len(data) * number // 5 + 1  # in the middle of a record, of a packet
        growing.write_bytes(data[:size])
        target = stream.Stream(streaming, out, _BUCKETS)
        setattr(target, name, _dying(target, name, after))
        query = _query(streaming, target, out, "mqtt_growing", path=str(folder))
        with pytest.raises(StreamingQueryException):
            query.processAllAvailable()
    # Killed between its own record and Spark's: the batch comes once more.
    end = _record_before(data, len(data) * 4 // 5)
    growing.write_bytes(data[:end])
    target = stream.Stream(streaming, out, _BUCKETS)

    def take(frame, number):
        target.take(frame, number)
        if number == 1:
            raise _Killed("before the commit")

    query = _query(streaming, target, out, "mqtt_growing", take, path=str(folder))
    with pytest.raises(StreamingQueryException):
        query.processAllAvailable()
    # The next day: what was read is deleted, the traffic goes on in another file.
    growing.unlink()
    (folder / "north" / "c.pcap").write_bytes(data[:24] + data[end:])
    write(Plan(devices=3, readings=40, seed=2), folder / "b.jsonl")
    target = stream.Stream(streaming, out, _BUCKETS)
    query = _query(streaming, target, out, "mqtt_growing", path=str(folder), settle=0)
    query.processAllAvailable()
    query.stop()
    target.refresh()
    growing.write_bytes(data[:end])
    _batch(streaming, folder, tmp_path / "batch")
    assert_same(out, tmp_path / "batch")
    assert len(rows(out, "packets")) > 500
    assert rows(out, "gaps") and rows(out, "losses")
    assert not target.is_behind


def test_merge_when_parts_are_put_together_then_rows_stay_in_their_buckets():
    import pyarrow as pa

    from tools.fleet.spark import pack

    one, two = pa.table({"a": [1, 2]}), pa.table({"a": [3]})

    batches = [
        pack.rows([("events", 1, one), ("captures", 0, two)], site="s"),
        pack.rows([("events", 1, two), ("events", 3, one)], site="s"),
        pack.rows([("events", 1, one)], site="t"),
    ]
    found = {}
    for batch in stream.merge(batches):
        for row in batch.to_pylist():
            key = row["site"], row["kind"], row["bucket"]
            found[key] = pack.load([row["part"]])["a"].to_pylist()
    assert found == {
        ("s", "events", 1): [1, 2, 3],
        ("s", "events", 3): [1, 2],
        ("s", "captures", 0): [3],
        ("t", "events", 1): [1, 2],
    }


def _files(out):
    return {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}


def test_refresh_judges_only_sites_with_news_and_gives_the_tables_of_a_full_run(
    streaming, tmp_path
):
    folder, out = tmp_path / "captures", tmp_path / "out"
    buckets = 8  # so many that some have devices and no topics, or nothing at all
    names = ("north", "south/gate=1", "west")
    for seed, site in enumerate(names):
        (folder / site).mkdir(parents=True)
        plan = Plan(devices=3, readings=40, seed=seed, fault_rate=0.3, gap_rate=0.05)
        (folder / site / "a.pcap").write_bytes(simulated(plan)[0])
    asked = []

    def refreshed():
        target = stream.Stream(streaming, out, buckets)
        query = _query(
            streaming, target, out, "mqtt_growing", path=str(folder), settle=0, buckets=buckets
        )
        query.processAllAvailable()
        query.stop()
        judge = target._judge
        target._judge = lambda behind, *rest: (asked.append(sorted(behind)), judge(behind, *rest))
        return target.refresh()

    refreshed()
    before = _files(out / "flows" / "site=north")
    data = simulated(Plan(devices=3, readings=40, seed=9, fault_rate=0.3))[0]
    (folder / "west" / "b.pcap").write_bytes(data)
    result = refreshed()
    assert refreshed().findings == result.findings
    assert asked == [sorted(names), ["west"]]
    assert before and _files(out / "flows" / "site=north") == before
    full = job.run(streaming, folder, tmp_path / "batch", job.Options(buckets=buckets))
    assert_same(out, tmp_path / "batch")
    assert (result.rows, result.findings) == (full.rows, full.findings)
    assert any(result.findings.values())
    for name, facts in full.facts.items():
        assert _shown(name, result.facts[name]) == _shown(name, facts), name


def test_site_is_judged_again_when_it_has_news_or_the_rules_are_others(tmp_path):
    folder = tmp_path / "judged"
    assert sites.Judged(folder, "a").behind({"s": 3, "t": 1}) == ["s", "t"]
    for name, batch in (("s", 3), ("t", 4)):
        sites.Judged(folder, "a").add(name, batch, {"flows": 2}, {"lost": 1}, {})
    again = sites.Judged(folder, "a")
    assert again.behind({"s": 3, "t": 1}) == []
    assert again.behind({"s": 4, "t": 4, "u": 0}) == ["s", "u"]
    assert sites.Judged(folder, "b").behind({"s": 3}) == ["s"]
    result = again.result()
    assert (result.rows["flows"], result.findings["lost messages"]) == (4, 2)
    assert sites.rules(("a/#",)) != sites.rules(()) == sites.rules([])


def _shown(name, rows):
    if name == "timeline":
        _, moments = timeline.shown(rows)
        return {what: sum(one.get(what, 0) for one in moments) for what in ("packets", "losses")}
    return sorted(rows.to_pylist(), key=repr)


def _numbers(folder):
    lines = [line for path, _ in spool_files(folder) for line in path.read_bytes().splitlines()]
    return [bytes.fromhex(json.loads(line)["payload"]).decode() for line in lines]


def test_live_broker_when_query_stops_and_starts_then_each_message_is_a_row_once(
    streaming, mosquitto, tmp_path
):
    out, spool = tmp_path / "out", tmp_path / "spool"
    target = stream.Stream(streaming, out, _BUCKETS)
    options = {
        "path": str(spool),
        "server": mosquitto.host,
        "port": mosquitto.port,
        "filter": "live/# other",
        "clientid": "fleet-live",
        "keep": "true",
    }
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id="fleet-live-publisher")
    client.connect(mosquitto.host, mosquitto.port)
    client.loop_start()
    sent = []

    def publish(count):
        for _ in range(count):
            number = str(len(sent))
            client.publish("live/%s" % (len(sent) % 3), number, 1 + len(sent) % 2)
            sent.append(number)

    def wait(condition):
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < deadline, "nothing more arrives"
            time.sleep(0.05)

    query = _query(streaming, target, out, "mqtt", **options)
    wait(lambda: mosquitto.log_text().count("fleet-live 2 live/#"))
    publish(40)
    wait(lambda: len(_numbers(spool)) == len(sent))
    query.processAllAvailable()
    query.stop()
    publish(40)  # while nobody is there: the session keeps them
    query = _query(streaming, target, out, "mqtt", **options)
    wait(lambda: len(_numbers(spool)) == len(sent))
    query.processAllAvailable()
    query.stop()
    client.disconnect()
    client.loop_stop()
    packets = [row for row in rows(out, "packets") if row["packet_type"] == "PUBLISH"]
    assert len(packets) == len(sent)
    assert sorted(_numbers(spool)) == sorted(sent)
