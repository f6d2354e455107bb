"""No function on the way between connect() and disconnect() takes its frame from the heap."""

import ast

import pytest

from host_tests.sizes.frames import MOST_WORDS, Frame, frames_of_library, from_heap
from tools.boards.places import LIBRARY

CONSTRUCTS = "runs once, in a constructor"
CONNECTS = "runs while a connection is opened, which allocates"
SUBSCRIBES = "sends a SUBSCRIBE, which is not sent often"
RAISES = "makes or raises an error"
GIVES_UP = "a message is refused or given up, not sent"
ENDS = "waits until all is out, to close or to ping"
OTHERS = "keeps another client's names, and its costs"

# Every function with a larger frame, and why it may have one.
MAY_BE_LARGE = {
    "client.MQTTClient.__init__": CONSTRUCTS,
    "client.MQTTClient.reconnect": CONNECTS,
    "client.MQTTClient._make_connect": CONNECTS,
    "client.MQTTClient._begin": CONNECTS,
    "client.MQTTClient._take": CONNECTS,
    "client.MQTTClient._make_requests": SUBSCRIBES,
    "client.MQTTClient._granted": SUBSCRIBES,
    "protocol.Protocol._on_request_ack": SUBSCRIBES,
    "client.MQTTClient._set_will": CONSTRUCTS,
    "client.MQTTClient._make_room": GIVES_UP,
    "client.MQTTClient._give_up": GIVES_UP,
    "client.MQTTClient._drain": ENDS,
    "client.MQTTClient.disconnect": ENDS,
    "codes.refusal": RAISES,
    "errors.MQTTError.__init__": RAISES,
    "fileblockdevice.FileBlockDevice.__init__": CONSTRUCTS,
    "fileblockdevice._is_on_fat": CONSTRUCTS,
    "journal.Journal.open": CONSTRUCTS,
    "ordered.Ordered.publish": "one message at a time is not for speed",
    "packet.as_text": CONNECTS,
    "packet._copied": "copies an array, which allocates",
    "packet.connect_packet": CONNECTS,
    "properties.encode": "makes properties, which allocates",
    "properties.get": "makes an object of a property, which allocates",
    "ram.RamStore.open": CONSTRUCTS,
    "ram.RamStore.put": "runs up to MicroPython 1.25 only, where slices allocate",
    "recovery.Recovery.restore": CONSTRUCTS,
    "transport.broken": RAISES,
    "transport.open_stream": CONNECTS,
    "transport.open_tcp": CONNECTS,
    "v5.Protocol5.__init__": CONSTRUCTS,
}
# Modules of which all runs at such a time.
MAY_BE_LARGE_IN = {
    "opening": CONSTRUCTS,
    "terms": CONNECTS,
    "tls": CONNECTS,
    "tlserror": RAISES,
    "simple": OTHERS,
    "robust": OTHERS,
    "sslparams": OTHERS,
    "aio": "asyncio allocates by itself",
}


@pytest.fixture(scope="module")
def frames():
    return frames_of_library()


def test_only_functions_off_the_way_take_their_frame_from_the_heap(frames):
    large = {
        one.name for one in from_heap(frames) if one.name.partition(".")[0] not in MAY_BE_LARGE_IN
    }
    assert large - set(MAY_BE_LARGE) == set(), f"more than {MOST_WORDS} words"
    assert set(MAY_BE_LARGE) - large == set(), "small by now: take it out of the list"


def test_functions_that_unlock_the_heap_first_are_entered_with_it_locked(frames):
    locked = {one.name.rpartition(".")[2] for one in frames if one.is_entered_locked}
    assert locked, "does this test still look in the right place?"
    calls = 0
    for path in sorted(LIBRARY.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for field in ("body", "orelse", "finalbody"):
                block = getattr(node, field, None)
                if isinstance(block, list):
                    calls += _check_block(path.name, block, locked)
    assert calls >= len(locked)


def _check_block(name, block, locked):
    calls = 0
    for k, statement in enumerate(block):
        if isinstance(statement, (ast.Assign, ast.Expr, ast.Return)):
            called = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
            names = {getattr(n.func, "attr", getattr(n.func, "id", None)) for n in called}
            if names & locked:
                before = ast.unparse(block[k - 1]) if k else "nothing"
                assert before == "heap_lock()", f"{name}:{statement.lineno}"
                calls += 1
    return calls


def test_frame_of_a_function_is_counted_as_the_compiler_counts_it(tmp_path):
    """Arguments, locals, the deepest expression, and three words for each nested try."""
    (tmp_path / "one.py").write_text(
        "class A:\n"
        "    def __init__(self, a, b):\n"
        "        self.x = a + b\n"
        "def f(a):\n"
        "    try:\n"
        "        try:\n"
        "            a()\n"
        "        except ValueError:\n"
        "            pass\n"
        "    finally:\n"
        "        a()\n"
        "def g():\n"
        "    '''Says so.'''\n"
        "    heap_unlock()\n"
        "    h(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)\n"
        "def h(*_):\n"
        "    return [one for one in _]\n"
    )
    found = {one.name: one for one in frames_of_library(tmp_path)}
    assert sorted(found) == ["one.A.__init__", "one.f", "one.g", "one.h", "one.h.<expression>"]
    assert found["one.A.__init__"].words == 5
    assert found["one.f"].words == 16
    assert found["one.g"] == Frame("one.g", 21, True)
    assert from_heap(list(found.values())) == [found["one.f"]]
