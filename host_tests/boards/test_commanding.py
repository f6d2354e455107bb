"""A command by the tool, signed and not, and which answers it believes."""

from types import SimpleNamespace

import pytest

from host_tests.firmware import decoding
from tools.boards.commanding import answer_in, command
from tools.boards.errors import BoardError

KEY = bytes(range(32))
TOPIC = "sensors/hall-1/answer"


def proven(text, topic=TOPIC, key=KEY):
    return decoding.proven(key, topic.encode(), text)


@pytest.mark.parametrize(
    ("payload", "key", "answer"),
    [
        (b"7 done", None, "done"),
        (b"8 done", None, None),
        ("7 refused: \x1b]0;x\x07\x9b\u202e".encode(), None, "refused: \ufffd]0;x" + "\ufffd" * 3),
        (b"\xff\xff", None, None),
        (b"", KEY, None),
        (b"7 done", KEY, None),
        (proven(b"7 done"), KEY, "done"),
        (proven(b"7 refused: no"), KEY, "refused: no"),
        (proven(b"8 done"), KEY, None),
        (proven(b"7 done", key=bytes(32)), KEY, None),
        (proven(b"7 done", topic="sensors/hall-2/answer"), KEY, None),
        (proven(b"7 refused: no").replace(b"refused: no", b"done"), KEY, None),
    ],
)
def test_answer_is_believed_with_its_proof_alone(payload, key, answer):
    assert answer_in(payload, TOPIC, "7", key) == answer


class Device:
    """A paho client, its broker, its clock, and a device that answers what it hears."""

    def __init__(self, answer, is_gone=False):
        self.answer, self.is_gone, self.now, self.sent = answer, is_gone, 0.0, []

    def monotonic(self):
        return self.now

    def time_ns(self):
        return 1_800_000_000_123_456_789

    def loop(self, timeout):
        self.now += timeout
        return 7 if self.is_gone else 0

    def subscribe(self, topic, qos):
        assert (topic, qos) == (TOPIC, 1)
        self.on_subscribe()

    def publish(self, topic, payload, qos):
        self.sent.append(payload)
        name = payload.partition(b"#")[2].split()[0]
        for answer in self.answer(name):
            self.on_message(self, None, SimpleNamespace(topic=TOPIC, payload=answer))


def test_command_is_signed_with_the_time_as_its_number():
    device = Device(lambda name: [name + b" done", proven(name + b" refused: no")])
    root = "sensors/hall-1"
    assert command(device, root, "interval 500", KEY, 30, device) == "refused: no"
    ((shown, _, said),) = [sent.partition(b" ") for sent in device.sent]
    assert shown == decoding.proof(KEY, b"u31c\x01", b"sensors/hall-1/command", said)
    number, name, words = said.split(b" ", 2)
    assert (number, name[:1], words) == (b"1800000000123", b"#", b"interval 500")


def test_command_without_answer_ends_in_time():
    device = Device(lambda name: [])
    assert command(device, "sensors/hall-1", "sample", None, 30, device) is None
    assert 30 <= device.now < 31
    assert device.sent[0].endswith(b" sample")


def test_command_whose_broker_goes_says_so():
    device = Device(lambda name: [], is_gone=True)
    with pytest.raises(BoardError, match="the broker is gone"):
        command(device, "sensors/hall-1", "sample", None, 30, device)
