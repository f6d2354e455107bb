"""A command by the tool, signed and not, and which answers it believes."""

import pytest

from host_tests.boards.test_updates import KEY, SlowClient
from host_tests.firmware import decoding
from tools.boards.commanding import answer_in, command
from tools.boards.errors import BoardError

ROOT = "sensors/hall-1"
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


def client_of(*answers, **about):
    """A client with a device that answers a command so, behind its id."""

    def answer(topic, payload):
        assert topic == f"{ROOT}/command"
        name = payload.partition(b"#")[2].split()[0]
        return [(TOPIC, make(name)) for make in answers]

    return SlowClient(answer, **about)


def test_command_is_signed_with_the_time_as_its_number():
    client = client_of(lambda name: name + b" done", lambda name: proven(name + b" refused: no"))
    assert command(client, ROOT, "interval 500", KEY, 30, client) == "refused: no"
    assert client.subscribed == [(TOPIC, 1)]
    ((shown, _, said),) = [sent.partition(b" ") for _, sent in client.sent]
    assert shown == decoding.proof(KEY, b"u31c\x01", b"sensors/hall-1/command", said)
    number, name, words = said.split(b" ", 2)
    assert (number, name[:1], words) == (b"1800000000123", b"#", b"interval 500")


def test_command_without_answer_ends_in_time():
    client = client_of()
    assert command(client, ROOT, "sample", None, 30, client) is None
    assert 30 <= client.now < 31
    assert client.sent[0][1].endswith(b" sample")


def test_command_whose_broker_goes_says_so():
    client = client_of(ends_at=0)
    with pytest.raises(BoardError, match="the broker is gone"):
        command(client, ROOT, "sample", None, 30, client)
