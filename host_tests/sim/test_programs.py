"""Random programs of all fronts break no promise, over plain streams, over TLS, and over streams
that do everything a stream may; wrong fronts would be noticed.

Shows 31-3.9-SUBACK, 31-4.1-Q1, 31-4.1-Q2, MQTT-3.2.2-15, MQTT-4.3.2-4, MQTT-4.3.3-5,
MQTT-4.3.3-10, MQTT-4.3.3-11, MQTT-4.6.0-2 to MQTT-4.6.0-4, MQTT-4.13.1-1, RT-MQUEUE and
RT-OBJECTS for them.
"""

import itertools

import pytest

import umqtt31 as core
from host_tests.sim import blocking, calls, tasks
from host_tests.sim.programs import broken_promise
from host_tests.sim.streams import Records, Unsteady
from host_tests.sim.wrong_clients import make_mistake
from umqtt31 import MQTTClient, aio, alias, opening, queueing, robust, simple, v5
from umqtt31.journal import Journal

STREAMS = {"plain": None, "TLS": Records, "unsteady": Unsteady}
FRONTS = {
    "calls": calls.Program,
    "tasks": tasks.Program,
    "reboots": tasks.Rebooting,
    "blocking": blocking.Program,
}
# How many programs of each front, by the stream.
COUNTS = {
    "calls": {"plain": 200, "TLS": 80, "unsteady": 60},
    "tasks": {"plain": 125, "TLS": 60, "unsteady": 30},
    "reboots": {"plain": 50, "TLS": 30, "unsteady": 30},
    "blocking": {"plain": 400, "TLS": 150, "unsteady": 100},
}
MANY = [(front, stream, range(n)) for front, row in COUNTS.items() for stream, n in row.items()]
# Programs that met what no other did.
SPECIAL = (
    ("calls", "plain", (501, 653, 1094, 1777, 2218, 2555, 4546, 8502, 25819)),
    ("calls", "TLS", (268, 931, 1469, 1823, 21178, 21352, 21362, 22851, 2007026, 2008098)),
    ("calls", "unsteady", (1469, 20381)),
    ("reboots", "plain", (1000488, 1001296)),
    ("reboots", "TLS", (2001274,)),
    ("blocking", "plain", (1475,)),
)


@pytest.mark.parametrize(("front", "stream", "seeds"), [*MANY, *SPECIAL])
def test_programs_break_no_promise(front, stream, seeds):
    for seed in seeds:
        broken = broken_promise(FRONTS[front](seed, over=STREAMS[stream]))
        assert not broken, f"seed {seed}: {broken}"


GOES_ON = core, "lose", "        close(client)\n", "        pass\n"
TAKEN_ALL = core, "_pump", "client._left -= n", "client._left = 0"
# The front and its stream, what is wrong, the rules that this breaks, and the mistake.
WRONG = (
    ("calls", "plain", "filters taken for known", "RT-OBJECTS",
     MQTTClient, "_on_connack", "if self._filters and not self._is_told:", "if False:"),
    ("calls", "plain", "aliases of any length", "MQTT-3.2.2-15",
     alias, "shorten", "min(client._most_bytes, client.buffer_size)", "65535"),
    ("calls", "plain", "refused and answered again", "MQTT-4.6.0-2 MQTT-4.6.0-3",
     v5.Message5, "refuse", "self.keep()", "pass"),
    ("calls", "plain", "AUTH passed over", "MQTT-4.13.1-1",
     v5.MQTTClient, "_on_other", "if kind >> 2 != 1 and", "if 7 < kind < 15 and"),
    ("calls", "plain", "age not looked at offline", "max_age",
     queueing, "extend", "super()._rest()\n            self._expire()", "super()._rest()"),
    ("calls", "plain", "refused over a closed stream", "AttributeError",
     v5.MQTTClient, "refuse", "if self._stream:", "if True:"),
    ("calls", "unsteady", "request in the place of a ping", "connection",
     core, "begin_request", "if client._first:", "if False:"),
    ("tasks", "plain", "done when it is handed over", "MQTT-4.3.2-4",
     aio._Messages, "__next__", "raise one._stop",
     "one.done()\n            self._last = None\n            raise one._stop"),
    ("tasks", "plain", "stands where it came first", "MQTT-4.6.0-2 MQTT-4.6.0-3", aio, "extend",
     "link:\n                taken.remove(one)", "link:\n                one._link = link"),
    ("tasks", "plain", "what is taken forgotten", "MQTT-4.3.3-10",
     aio, "extend", "if message.dup:", "if False:"),
    ("reboots", "plain", "held id not kept", "MQTT-4.3.3-10",
     aio, "extend", "self._store.note(_PUBLISH, packet_id)", "pass"),
    ("reboots", "plain", "said to be kept", "31-4.1-Q1 31-4.1-Q2 publish", Journal, "put",
     "    if self._is_deferred:\n        self._is_due = True",
     "    if True:\n        self._is_due = True"),
    ("reboots", "plain", "answers what no connection awaits", "MQTT-4.6.0-2 MQTT-4.6.0-3",
     aio, "extend", "self.is_connected and one._link == self._link", "self.is_connected"),
    ("reboots", "plain", "any level taken", "termination",
     opening, "_refuse", "raise", "if 'level' not in text:\n        raise"),
    ("blocking", "plain", "returns before its answer", "publish",
     simple.MQTTClient, "publish", "if qos:\n        self._settle()", "if False:\n        pass"),
    ("blocking", "plain", "what is in flight kept", "31-2.1-DUP publish 31-4.1-Q2",
     simple.MQTTClient, "connect",
     "    self._tail = self._head\n"
     "    give_back(self)\n"
     "    self.inflight = self.queued = self._again = 0\n", ""),
    ("blocking", "plain", "published once", "publish",
     robust.MQTTClient, "publish", "self._on_loss", "return self._on_loss"),
    ("calls", "plain", "a part taken for all", "MQTT-4.3.3-11 termination", *TAKEN_ALL),
    ("blocking", "unsteady", "a part taken for all", "31-3.1 MQTT-4.3.3-11 publish", *TAKEN_ALL),
    ("tasks", "TLS", "others written with it", "TLS",
     core, "_pump", "while client._left or _load(", "while _load("),
    ("calls", "unsteady", "goes on with the stream", "stream", *GOES_ON),
    ("tasks", "unsteady", "goes on with the stream", "stream", *GOES_ON),
    ("blocking", "unsteady", "goes on with the stream", "stream", *GOES_ON),
)  # fmt: skip


@pytest.mark.parametrize("row", WRONG, ids=lambda row: " ".join(row[:3]))
def test_wrong_front_is_noticed(row, monkeypatch):
    """By the first program that meets it."""
    front, stream, _, rules, *mistake = row
    make_mistake(monkeypatch, *mistake)
    special = (one[2] for one in SPECIAL if one[:2] == (front, stream))
    for seed in itertools.chain(range(60), *special, range(60, 300)):
        try:
            broken = broken_promise(FRONTS[front](seed, over=STREAMS[stream]))
        except Exception as error:
            broken = type(error).__name__
        if broken:
            assert getattr(broken, "rule", broken) in rules.split()
            return
    pytest.fail("not noticed")
