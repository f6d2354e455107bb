"""The audit as a command: what passes, what fails, and what is wrong use."""

import json
import signal
import socket
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from host_tests.fleet.captures import Capture, connected
from host_tests.fleet.simulate.__main__ import main as simulate
from tools.fleet import batch, cli, outcome
from tools.fleet.capture import files
from tools.fleet.capture.frames import Tally
from tools.fleet.report import collect
from tools.fleet.spark import engine


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        ((), {}),
        (["lost messages=3"], {"lost messages": 3}),
        (["lost=3", "Viol = 0"], {"lost messages": 3, "violations": 0}),
    ],
)
def test_allow_names_findings_by_how_they_begin(texts, wanted):
    assert batch.read_limits(texts) == wanted


@pytest.mark.parametrize("text", ["lost", "=3", "lost=many", "nothing=3", "lost=-1", "lost=²"])
def test_allow_that_is_not_understood_says_which_names_there_are(text):
    with pytest.raises(batch.BadInput, match="lost messages"):
        batch.read_limits([text])


def test_findings_fail_when_there_are_more_than_allowed():
    findings = {"violations": 1, "lost messages": 3, "overtaking messages": 0}
    assert batch.too_many(findings, {"lost messages": 3}) == {"violations": 1}
    assert batch.too_many(findings, {"lost messages": 2, "violations": 1}) == {"lost messages": 3}


def test_alert_gets_one_line_for_each_finding(tmp_path, capfd):
    over = {"violations": 1, "lost messages": 3}
    batch.tell("cat; exit 3", over, {"lost messages": 2}, tmp_path)
    told = capfd.readouterr()
    rows = [json.loads(line) for line in told.out.splitlines()]
    found = [(row["finding"], row["number"], row["allowed"]) for row in rows]
    assert found == [("violations", 1, 0), ("lost messages", 3, 2)]
    assert told.err.count("failed: 3") == 2


def test_alert_that_hangs_is_ended_and_said(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(batch, "_ALERT_S", 0.01)
    assert batch.tell("exec sleep 600", {"violations": 1}, {}, tmp_path) == {}
    assert "ended after" in capfd.readouterr().err


_AUDIT = ["audit", "captures", "--out", "out"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["audit", "", "--out", "out"], "CAPTURES"),
        (["audit", "--out", "out"], "(with make: CAPTURES=…)"),
        (["audit", "captures"], "OUT="),
        ([*_AUDIT, "--ports", "²"], "no TCP port"),
        ([*_AUDIT, "--ports", "1883-1885"], "1883,1884"),
        ([*_AUDIT, "--exempt", "a/#/b"], "no filter"),
        ([*_AUDIT, "--exempt", ""], "no filter"),
        ([*_AUDIT, "--alert", " "], "--alert"),
        ([*_AUDIT, "--since", ""], "--since"),
        ([*_AUDIT, "--counter", ""], "--counter"),
        ([*_AUDIT, "--memory", "3 GB"], "900m"),
        ([*_AUDIT, "--allow", "nothing=3"], "lost messages"),
        ([*_AUDIT, "--every", "0"], "range"),
        ([*_AUDIT, "--every", "nan"], "no number"),
        ([*_AUDIT, "--every", "inf"], "range"),
        ([*_AUDIT, "--exempt", "#/a"], "no filter"),
        (["decode", ".", "--out", "../out"], "no capture"),
        (["decode", ".", "--out", "out"], "must not be in"),
    ],
)
def test_option_that_is_wrong_says_what_to_write(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli.cli, arguments)
    assert (done.exit_code, said in done.output) == (2, True), done.output
    assert "Traceback" not in done.output and list(tmp_path.iterdir()) == []


def test_folders_whose_names_have_spaces_are_audited_by_make():
    words = ["make", "-n", "audit", "CAPTURES=my captures", "OUT=my tables"]
    done = subprocess.run(words, cwd=engine.ROOT, capture_output=True, text=True)
    assert 'fleet audit "my captures" --out "my tables"' in done.stdout


def test_audit_that_fails_does_not_end_as_if_something_was_found(tmp_path, monkeypatch):
    def fails(*_):
        raise failures.pop()

    monkeypatch.setattr(batch, "run", fails)
    failures = [OSError(28, "No space left on device"), RuntimeError("first\nlast")]
    failures.append(KeyboardInterrupt())
    for said in ("interrupted", "nothing was judged: last", "No space left"):
        done = CliRunner().invoke(cli.cli, ["audit", str(tmp_path), "--out", str(tmp_path / "o")])
        assert (done.exit_code, said in done.output) == (2, True), done.output
    for name in ("a.pcap", "b.pcap"):
        Capture().write(tmp_path / name)
    out = tmp_path / "b.pcap" / "out"
    done = CliRunner().invoke(cli.cli, ["decode", str(tmp_path / "a.pcap"), "--out", str(out)])
    assert (done.exit_code, "Not a directory" in done.output) == (2, True), done.output


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("first\nlast", "last"),
        ("", "RuntimeError('')"),
        (
            "Traceback:\n  File x\nOSError: [Errno 28] full\n\n== Plan ==\n+- Scan",
            "OSError: [Errno 28] full",
        ),
        (
            "Job aborted\n\tat a.Error$.b(C.scala)\nCaused by: java.io.IOException: full\n\tat d",
            "java.io.IOException: full",
        ),
    ],
)
def test_reason_of_a_failure_is_the_line_that_names_the_error(text, wanted):
    assert batch.reason(RuntimeError(text)) == wanted


def test_wrong_port_is_said_before_anything_is_judged(tmp_path, capsys):
    capture = Capture()
    capture.connection(b"dev")
    capture.write(tmp_path / "a.pcap")
    batch._look_at_ports(tmp_path, "1884,8883")
    assert "MQTT on port 1883: --ports 1883?" in capsys.readouterr().err
    batch._look_at_ports(tmp_path, "1883")
    assert capsys.readouterr().err == ""


def test_audit_is_done_again_when_files_have_changed(tmp_path, monkeypatch):
    """And ends with the exit code of the last one when it is interrupted; not for a store that
    does not answer for a while."""
    done, codes = [], [batch.BAD_INPUT, batch.FINDINGS]
    listed, failures = files.listed, [OSError("the store does not answer")]

    def asked(folder):
        if failures:
            raise failures.pop()
        return listed(folder)

    def once(folder, out, wish, told):
        done.append(sorted(one.name for one in folder.iterdir()))
        (tmp_path / "in" / ("%d.pcap" % len(done))).write_bytes(b"x" if len(done) < 2 else b"")
        if len(done) == 2:
            signal.raise_signal(signal.SIGINT)
        return codes.pop(0)

    (tmp_path / "in").mkdir()
    monkeypatch.setattr(batch, "_once", once)
    monkeypatch.setattr(files, "listed", asked)
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    try:
        code = batch.run(tmp_path / "in", tmp_path / "out", batch.Wish(), every_s=0.01)
    finally:
        for number, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
            signal.signal(number, handler)
    assert (done, code) == ([[], ["1.pcap"]], batch.FINDINGS)


def test_java_that_is_starting_is_not_lost_when_the_audit_is_interrupted(monkeypatch):
    """And what happens then is not for pyspark to say, which sets a handler of its own."""
    started, told = [], []

    def starts(*_):
        signal.raise_signal(signal.SIGINT)
        started.append(signal.signal(signal.SIGINT, signal.SIG_IGN))

    monkeypatch.setenv("JAVA_HOME", "here")
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(engine, "_context", starts)
    before = signal.signal(signal.SIGINT, lambda *_: told.append(len(started)))
    try:
        engine.start()
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert told == [1, 1]


def test_what_the_user_has_set_of_spark_stands(monkeypatch):
    conf = engine.SparkConf(loadDefaults=False).setAppName("mine").set("spark.ui.enabled", "true")
    monkeypatch.setattr(engine.SparkContext, "getOrCreate", lambda conf: dict(conf.getAll()))
    found = engine._context(conf, None, engine._ALONE)
    wanted = {"spark.app.name": "mine", "spark.ui.enabled": "true", "spark.log.level": "ERROR"}
    assert found.items() >= wanted.items()


def test_master_that_does_not_answer_is_said_before_spark_starts(monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "here")
    monkeypatch.setattr(engine.SparkContext, "getOrCreate", None)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        engine._find("spark://127.0.0.1:1,127.0.0.1:%d" % port)
    with pytest.raises(engine.NotStarted, match="refused: look at --master"):
        engine.start("spark://[::1]:1,127.0.0.1:%d" % port)


@pytest.mark.parametrize("size", [0, 10, 1000, 1003, 1017])
def test_end_of_a_file_that_is_written_to_is_no_damage(size, tmp_path):
    capture, talk = connected(b"dev")
    for number in range(20):
        talk.publish(0, b"t", b"%d" % number)
    path = capture.write(tmp_path / "a.pcap")
    path.write_bytes(path.read_bytes()[:size])
    for is_growing in (True, False):
        tally = Tally(is_growing=is_growing)
        assert sum(len(one.ts) for one in files.read_frames(path, tally)) >= size // 110
        assert bool(tally.errors) == (not is_growing and "unfinished" not in tally.counts)


def test_folder_of_one_audit_is_refused_to_another_meanwhile(tmp_path):
    with batch.alone(tmp_path / "out"):
        with pytest.raises(batch.BadInput, match="another audit"):
            with batch.alone(tmp_path / "out"):
                pass
        with batch.alone(tmp_path / "other"):
            pass
    with batch.alone(tmp_path / "out"):
        pass


_NOW = {"site": ["north", "north", "south"], "client_id": ["a", "b", "a"]}


def _devices(folder, **columns):
    (folder / "devices").mkdir(parents=True, exist_ok=True)
    rows = pa.table(_NOW | {"state": ["well"] * 3} | columns)
    pq.write_table(rows, folder / "devices" / "one.parquet")
    return folder


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing", "no folder devices"),
        ("empty", "devices is empty"),
        ("damaged", "cannot be read"),
        ("old", "another version"),
        ("other", "another version"),
    ],
)
def test_since_that_is_no_audit_is_said_before_anything_is_judged(name, said, tmp_path):
    (tmp_path / "captures").mkdir()
    (tmp_path / "captures" / "a.pcap").touch()
    (tmp_path / "nothing").mkdir()
    (tmp_path / "empty" / "devices").mkdir(parents=True)
    (_devices(tmp_path / "damaged") / "devices" / "one.parquet").write_text("no table")
    _devices(tmp_path / "old", state=pa.nulls(3))
    _devices(tmp_path / "other", state=["well", "well", "sick"])
    with pytest.raises(batch.BadInput, match=said):
        batch.run(tmp_path / "captures", tmp_path / "out", batch.Wish(since=tmp_path / name))
    assert not (tmp_path / "out" / "packets").exists()


def test_since_tells_devices_that_became_worse_better_new_or_are_gone(tmp_path):
    before = collect.earlier(_devices(tmp_path / "before", state=["well", "losing", "well"]))
    now = collect.earlier(_devices(tmp_path / "now", state=["faulty", "well", "losing"]))
    new = collect.earlier(_devices(tmp_path / "new", client_id=["a", "c", "a"]))
    changes = collect._changes(now, before, set())
    assert changes["counts"] == {"worse": 2, "not seen any more": 0, "new": 0, "better": 1}
    changes = collect._changes(new, before, set())
    found = [(row["change"], row["site"], row["device"]) for row in changes["rows"]]
    assert found == [("not seen any more", "north", "b"), ("new", "north", "c")]
    other = collect.earlier(_devices(tmp_path / "other", site=["x", "x", "y"]))
    assert collect._no_common_site(now, before) == []
    assert "(there x, y, here north, south)" in collect._no_common_site(now, other)[0]


def test_since_cannot_tell_a_client_whose_connect_lies_before_one_of_the_captures(tmp_path):
    """Its connection goes on from one day to the next, and has an id in one of them only."""
    named = collect.earlier(_devices(tmp_path / "named", client_id=["a", "b", "a"]))
    other = collect.earlier(_devices(tmp_path / "other", client_id=["a", None, "b"]))
    changes = collect._changes(other, named, {"north"})
    found = [(row["change"], row["site"], row["device"]) for row in changes["rows"]]
    assert found == [
        ("not seen any more", "south", "a"),
        ("new", "south", "b"),
        ("not seen by id", "north", "b"),
    ]
    changes = collect._changes(named, other, set())["counts"]
    assert changes["new, or not known by id before"] == 1
    assert "not seen by id" not in changes


def test_out_inside_the_captures_is_wrong_use(tmp_path):
    """`make audit` calls it OUT."""
    with pytest.raises(batch.BadInput, match="another one for OUT"):
        batch.audit(tmp_path, tmp_path / "captures" / "out")


def test_folder_without_a_capture_says_why_each_file_is_none(tmp_path):
    (tmp_path / "monday").write_bytes(b"PK\3\4")
    with pytest.raises(batch.BadInput, match="name their folder\nmonday: zip archive: unpack"):
        batch.audit(tmp_path, tmp_path.with_name("out"))


@pytest.mark.parametrize("name", ["captures/a.pcap", "packets/notes/x.txt", "devices"])
def test_own_file_where_a_table_goes_is_wrong_use(name, tmp_path):
    """All that is in the folder of a table is replaced."""
    (tmp_path / "in").mkdir()
    for path in (tmp_path / "in" / "a.pcap", tmp_path / name):
        path.parent.mkdir(exist_ok=True, parents=True)
        path.touch()
    with pytest.raises(batch.BadInput, match="would delete .*/%s: name another" % name):
        batch.audit(tmp_path / "in", tmp_path)
    assert (tmp_path / name).exists()


def test_files_that_programs_put_beside_a_table_are_no_own_ones(tmp_path):
    """As Spark does that wrote a table again, and the Finder of macOS."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.pcap").touch()
    day = tmp_path / "out" / "packets" / "site=north" / "day=2026-01-01"
    day.mkdir(parents=True)
    for name in ("part-0.zstd.parquet", ".part-0.zstd.parquet.crc", "_SUCCESS", ".DS_Store"):
        (day / name).touch()
    batch._check(tmp_path / "in", tmp_path / "out")


@pytest.mark.parametrize(
    "text", ["devices=abc", "devices='x'", "qos=one", "fault_rate=()", "levels=3"]
)
def test_simulation_with_a_value_that_means_nothing_says_so(text, tmp_path):
    done = CliRunner().invoke(simulate, [str(tmp_path / "x.pcap"), text])
    assert (done.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert repr(text) in done.output and "such as" in done.output


def test_metrics_have_one_line_for_each_number():
    result = outcome.Result({"packets": 7}, {"lost messages": 2})
    lines = [line for line in outcome.metrics(result).splitlines() if not line.startswith("#")]
    assert lines == [
        'mqtt_fleet_findings{what="lost messages"} 2',
        'mqtt_fleet_rows{table="packets"} 7',
    ]
