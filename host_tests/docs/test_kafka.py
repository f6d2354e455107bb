"""The program of docs/guides/fleet-cluster.md, against librdkafka's cluster in miniature."""

import json
import signal
import sys

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from host_tests.docs import blocks
from host_tests.docs.typed import Terminal
from host_tests.fleet.captures import simulated
from host_tests.fleet.simulate.run import Plan
from host_tests.patience import until
from tools.fleet.capture import files, jsonl
from tools.fleet.capture.frames import Tally

# Kafka waits 45 seconds for a member that is gone unless it is told otherwise.
_IMPATIENT = '"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000,'


@pytest.fixture
def kafka():
    """-> a producer, in whose process the cluster is; `address` of its only broker."""
    settings = {"test.mock.num.brokers": 1, "log_level": 0}
    producer = Producer(settings)
    (broker,) = producer.list_topics(timeout=30).brokers.values()
    yield producer, "%s:%d" % (broker.host, broker.port)
    producer.flush(30)


def _started(folder, address, group):
    """The page's program in a process of its own."""
    (text,) = blocks.texts("docs/guides/fleet-cluster.md", "python")
    for old, new in (
        ("kafka.local:9092", address),
        ("EVERY_S = 30", "EVERY_S = 0.2"),
        ('"group.id": "fleet",', '"group.id": "%s", %s' % (group, _IMPATIENT)),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    (folder / "program.py").write_text(text)
    return Terminal([sys.executable, "program.py"], folder)


def _payloads(folder):
    lines = [line for path in folder.glob("[!.]*.jsonl") for line in path.read_text().splitlines()]
    return sorted(int(bytes.fromhex(json.loads(line)["payload"])) for line in lines)


def _committed(address, group):
    """How many messages Kafka knows the group to have."""
    places = [TopicPartition("mqtt", partition) for partition in range(2)]
    consumer = Consumer({"bootstrap.servers": address, "group.id": group})
    try:
        return sum(one.offset for one in consumer.committed(places, timeout=30))
    finally:
        consumer.close()


def test_fleet_kafka_md_program_when_killed_lands_each_record_once(kafka, tmp_path):
    producer, address = kafka
    folder, capture = tmp_path / "captures", simulated(Plan(devices=1, readings=5))[0]
    producer.produce("captures", capture, b"somewhere/gate.pcap")

    def publish(numbers):
        for number in numbers:
            producer.produce("mqtt", b"%d" % number, b"a/%d" % (number % 3), number % 2)
        producer.flush(30)

    def landed(group, count, ended_by):
        with _started(tmp_path, address, group) as program:
            until((folder / "gate.pcap").exists)
            until(lambda: len(_payloads(folder)) >= count)
            if ended_by == signal.SIGINT:
                until(lambda: _committed(address, group) >= 80)
            assert program.process.poll() is None
            program.stop(ended_by)

    publish(range(40))
    landed("one", 40, signal.SIGKILL)
    publish(range(40, 80))
    # Another group: all that it knows is what stands in the folder.
    landed("two", 80, signal.SIGINT)
    assert _payloads(folder) == list(range(80))
    for path in folder.glob("*.jsonl"):
        path.rename(tmp_path / path.name)
    publish(range(80, 90))
    # The folder is empty now: Kafka knows where it was.
    landed("two", 10, signal.SIGKILL)
    assert _payloads(folder) == list(range(80, 90))
    for path in tmp_path.glob("[!.]*.jsonl"):
        path.rename(folder / path.name)
    found = files.survey(folder)
    assert {source.problem for source in found} == {None}
    assert {files.subscriber(one.capture) for one in found if files.is_json(one)} == {"/-mqtt"}
    assert (folder / "gate.pcap").read_bytes() == capture
    tally = Tally()
    sources = [source for source in found if files.is_json(source)]
    batches = [batch for source in sources for batch in jsonl.read_events(source, tally)]
    assert sum(batch.num_rows for batch in batches) == 90 and not tally.errors
    topics = {topic for batch in batches for topic in batch["topic"].to_pylist()}
    assert topics == {"a/0", "a/1", "a/2"}
