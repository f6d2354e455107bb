"""Random programs of all fronts break no promise, over plain streams, over TLS, and over streams
that do everything a stream may; wrong fronts would be noticed.

Shows 31-3.9-SUBACK, 31-4.1-Q1, 31-4.1-Q2, MQTT-3.2.2-15, MQTT-4.3.2-4, MQTT-4.3.3-5,
MQTT-4.3.3-10, MQTT-4.3.3-11, MQTT-4.6.0-2 to MQTT-4.6.0-4, MQTT-4.13.1-1, RT-MQUEUE and
RT-OBJECTS for them.
"""

import itertools

import pytest

import umqtt31 as core
from host_tests.sim import blocking, calls, reboots, tasks
from host_tests.sim.mistakes import Mistake
from host_tests.sim.programs import broken_promise
from host_tests.sim.records import Records
from host_tests.sim.unsteady import Unsteady
from umqtt31 import MQTTClient, aio, alias, opening, queueing, robust, simple, v5
from umqtt31.journal import Journal

STREAMS = {"plain": None, "TLS": Records, "unsteady": Unsteady}
# How many programs of each front, by the stream.
SEEDS = {
    calls: {"plain": 200, "TLS": 80, "unsteady": 60},
    tasks: {"plain": 125, "TLS": 60, "unsteady": 30},
    reboots: {"plain": 50, "TLS": 30, "unsteady": 30},
    blocking: {"plain": 400, "TLS": 150, "unsteady": 100},
}
# Programs that met what no other did.
SPECIAL = (
    (calls, "plain", (501, 653, 1094, 1777, 2218, 2555, 4546, 8502, 25819)),
    (calls, "TLS", (268, 931, 1469, 1823, 21178, 21352, 21362, 22851, 2007026, 2008098)),
    (calls, "unsteady", (20381,)),
    (reboots, "plain", (1000488, 1001296)),
    (reboots, "TLS", (2001274,)),
    (blocking, "plain", (1475,)),
)


def name_of(value):
    return value.__name__.rpartition(".")[2] if hasattr(value, "__name__") else None


def keep_all_promises(front, stream, seeds):
    for seed in seeds:
        broken = broken_promise(front.Program(seed, over=STREAMS[stream]))
        assert not broken, f"seed {seed}: {broken}"


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("front", SEEDS, ids=name_of)
def test_programs_break_no_promise(front, stream):
    keep_all_promises(front, stream, range(SEEDS[front][stream]))


@pytest.mark.parametrize(("front", "stream", "seeds"), SPECIAL, ids=name_of)
def test_special_programs_break_no_promise(front, stream, seeds):
    keep_all_promises(front, stream, seeds)


GOES_ON = Mistake(core, "lose", "        close(client)\n", "        pass\n")
TAKEN_ALL = Mistake(core, "_pump", "client._left -= n", "client._left = 0")
WRONG = (
    (
        "filters taken for known", calls, "plain", "RT-OBJECTS",
        Mistake(MQTTClient, "_on_connack", "if self._filters and not self._is_told:", "if False:"),
    ),
    (
        "aliases of any length", calls, "plain", "MQTT-3.2.2-15",
        Mistake(alias, "shorten", "min(client._most_bytes, client.buffer_size)", "65535"),
    ),
    (
        "refused and answered again", calls, "plain", "MQTT-4.6.0-2 MQTT-4.6.0-3",
        Mistake(v5.Message5, "refuse", "self.keep()", "pass"),
    ),
    (
        "AUTH passed over", calls, "plain", "MQTT-4.13.1-1",
        Mistake(v5.MQTTClient, "_on_other", "if kind >> 2 != 1 and", "if 7 < kind < 15 and"),
    ),
    (
        "age not looked at offline", calls, "plain", "max_age",
        Mistake(queueing, "extend", "super()._rest()\n            self._expire()",
                "super()._rest()"),
    ),
    (
        "refused over a closed stream", calls, "plain", "AttributeError",
        Mistake(v5.MQTTClient, "refuse", "if self._stream:", "if True:"),
    ),
    (
        "request in the place of a ping", calls, "TLS", "connection",
        Mistake(core, "begin_request", "if client._first:", "if False:"),
    ),
    (
        "done when it is handed over", tasks, "plain", "MQTT-4.3.2-4",
        Mistake(aio._Messages, "__next__", "raise one._stop",
                "one.done()\n            self._last = None\n            raise one._stop"),
    ),
    (
        "stands where it came first", tasks, "plain", "MQTT-4.6.0-2 MQTT-4.6.0-3",
        Mistake(aio, "extend", "link:\n                taken.remove(one)",
                "link:\n                one._link = link"),
    ),
    (
        "what is taken forgotten", tasks, "plain", "MQTT-4.3.3-10",
        Mistake(aio, "extend", "if message.dup:", "if False:"),
    ),
    (
        "held id not kept", reboots, "plain", "MQTT-4.3.3-10",
        Mistake(aio, "extend", "self._store.note(_PUBLISH, packet_id)", "pass"),
    ),
    (
        "said to be kept", reboots, "plain", "31-4.1-Q1 31-4.1-Q2 publish",
        Mistake(Journal, "put", "    if self._is_deferred:\n        self._is_due = True",
                "    if True:\n        self._is_due = True"),
    ),
    (
        "answers what no connection awaits", reboots, "plain", "MQTT-4.6.0-2 MQTT-4.6.0-3",
        Mistake(aio, "extend", "if not is_here:", "if False:"),
    ),
    (
        "returns before its answer", blocking, "plain", "publish",
        Mistake(simple.MQTTClient, "publish", "if qos:", "if False:"),
    ),
    (
        "what is in flight kept", blocking, "plain", "31-2.1-DUP publish 31-4.1-Q2",
        Mistake(
            simple.MQTTClient, "connect",
            "    self._head = self._next = self._tail = self._rec = 0\n"
            "    self.inflight = self.queued = self._again = 0\n"
            "    self._wrap = -1\n", "",
        ),
    ),
    (
        "published once", blocking, "plain", "publish",
        Mistake(robust.MQTTClient, "publish", "self._on_loss", "return self._on_loss"),
    ),
    ("a part taken for all", calls, "plain", "MQTT-4.3.3-11 termination", TAKEN_ALL),
    ("a part taken for all", blocking, "unsteady", "31-3.1 MQTT-4.3.3-11 publish", TAKEN_ALL),
    (
        "others written with it", tasks, "TLS", "TLS",
        Mistake(core, "_pump", "while client._left or _load(", "while _load("),
    ),
    ("goes on with the stream", calls, "unsteady", "stream", GOES_ON),
    ("goes on with the stream", tasks, "unsteady", "stream", GOES_ON),
    ("goes on with the stream", blocking, "unsteady", "stream", GOES_ON),
    (
        "any level taken", reboots, "plain", "termination",
        Mistake(opening, "_refuse", "raise", "if 'level' not in text:\n        raise"),
    ),
)  # fmt: skip


@pytest.mark.parametrize(("what", "front", "stream", "rules", "mistake"), WRONG, ids=name_of)
def test_wrong_front_is_noticed(what, front, stream, rules, mistake, monkeypatch):
    """By the first program that meets it."""
    mistake.make(monkeypatch)
    special = (one[2] for one in SPECIAL if one[:2] == (front, stream))
    for seed in itertools.chain(range(60), *special, range(60, 300)):
        try:
            broken = broken_promise(front.Program(seed, over=STREAMS[stream]))
        except Exception as error:
            broken = type(error).__name__
        if broken:
            assert getattr(broken, "rule", broken) in rules.split()
            return
    pytest.fail("not noticed")
