"""No function on the way between connect() and disconnect() takes its frame from the heap."""

import ast
from collections import Counter

import pytest

from host_tests.sizes.frames import MOST_WORDS, Frame, frames_of_library, from_heap
from tools.boards.places import LIBRARY

# Every function with a larger frame, and why it may have one.
MAY_BE_LARGE = {
    "runs once, in a constructor": """
        __init__.MQTTClient.__init__ __init__.MQTTClient._recover journal.Journal.open
        fileblockdevice.FileBlockDevice.__init__ fileblockdevice._is_on_fat
        queueing.extend.MQTTClient.__init__
    """,
    "runs while a connection is opened, which allocates": """
        __init__._begin __init__.MQTTClient._make_connect __init__.MQTTClient._open
        __init__.MQTTClient.reconnect v5.MQTTClient._make_connect v5.MQTTClient._on_accept
        v5.MQTTClient._release v5.MQTTClient._requests
    """,
    "for a SUBSCRIBE, which is not sent often": """
        __init__.MQTTClient._granted __init__.MQTTClient._make_request
        __init__.MQTTClient._send_request __init__.on_request_ack v5.MQTTClient._make_request
        v5.MQTTClient._on_codes
    """,
    "a message is refused or given up, not sent": """
        queueing.extend.MQTTClient._give_up_old queueing.extend.MQTTClient._refuse
        queueing.extend.MQTTClient._room_without queueing.extend.MQTTClient._squeeze
        queueing.extend.MQTTClient._tell_drop v5.MQTTClient.refuse
    """,
    "closes the connection": "__init__.close v5.MQTTClient._farewell",
    "a text that was not checked before": "__init__.as_text",
    "blocks of flash have failed, so that room is made anew": "journal.Journal._rescue",
    "makes or copies properties, which allocates": """
        properties.encode properties.get v5.MQTTClient._said
    """,
    # On the way of a message: each call takes a frame from the heap, which goes again at its end
    # (with a locked heap it lies on the stack).  Nothing may be added here.
    "too large yet": """
        alias.shorten journal._crc journal.Journal._erase journal.Journal._find
        journal.Journal._is_put journal.Journal._is_written journal.Journal._list_held
        journal.Journal._load journal.Journal._pick journal.Journal._program journal.Journal._read
        journal.Journal._reclaim journal.Journal.fetch journal.Journal.put properties._end_of
        properties.fault_of properties.is_text queueing.extend.MQTTClient.publish
        v5.MQTTClient._add v5.MQTTClient._on_other v5.MQTTClient._set_age v5.MQTTClient.write
        v5.Message5.property_into
    """,
}
# Modules of which all runs at such a time.
MAY_BE_LARGE_IN = {
    "constructs": "opening",
    "connects": "handshake tls",
    "makes or raises an error": "errors",
    "asks the port for its link, which allocates": "wifi",
    "keeps another client's names, and its costs": "simple robust sslparams",
    "asyncio allocates by itself": "aio",
}


def names_in(table):
    return {name for names in table.values() for name in names.split()}


@pytest.fixture(scope="module")
def frames():
    return frames_of_library()


def test_only_functions_off_the_way_take_their_frame_from_the_heap(frames):
    modules, known = names_in(MAY_BE_LARGE_IN), names_in(MAY_BE_LARGE)
    large = {one.name for one in from_heap(frames) if one.name.partition(".")[0] not in modules}
    assert large - known == set(), f"more than {MOST_WORDS} words"
    assert known - large == set(), "small by now: take it out of the list"


def test_functions_that_unlock_the_heap_first_are_entered_with_it_locked(frames):
    locked = {one.name.rpartition(".")[2] for one in frames if one.is_entered_locked}
    assert locked, "does this test still look in the right place?"
    called = Counter()
    for path in sorted(LIBRARY.glob("*.py")):
        for before, statement in pairs(ast.parse(path.read_text(encoding="utf-8"))):
            calls = [one.func for one in ast.walk(statement) if isinstance(one, ast.Call)]
            names = {getattr(one, "attr", getattr(one, "id", None)) for one in calls} & locked
            if names:
                where = f"{path.name}:{statement.lineno}"
                assert before and ast.unparse(before) == "heap_lock()", where
                called.update(names)
    assert sum(called.values()) >= len(locked)


def pairs(tree):
    """(what stands before it in its block or None, statement) of each simple statement."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            for k, statement in enumerate(block if isinstance(block, list) else ()):
                if isinstance(statement, ast.Assign | ast.Expr | ast.Return):
                    yield block[k - 1] if k else None, statement


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
