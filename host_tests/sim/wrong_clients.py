"""Clients with one mistake each: a line of the library is another one.

They test the simulator: a run that misses one of them proves nothing.  Each names the mistake,
and a part of the default run that meets it, with the rules that it breaks.
"""

from typing import NamedTuple

import umqtt31 as core
from host_tests.sim.campaign import Job
from host_tests.sim.mistakes import Mistake
from host_tests.sim.script import parse
from umqtt31 import MQTTClient, queueing, v5
from umqtt31.journal import Journal


class Wrong(NamedTuple):
    """`mistake` breaks one of `rules` in `job`."""

    mistake: Mistake
    job: Job
    rules: tuple[str, ...]


def _single(script, *rules):
    return Job("single", str(parse(script))), rules


def _session(script, *rules):
    return Job("single", str(parse(script)), kinds=2), rules


def _hard(script, *rules):
    return Job("single", str(parse(script)), kinds=3, parts=3), rules


_OFFLINE = " start=offline deferred=1"
_ACKS_BACKWARDS = Mistake(
    core, "_load",
    "        client._left = client._acks_n - client._at",
    "        n = client._acks_n\n"
    "        if not client._at:\n"
    "            acks = [bytes(client._acks[k - 4 : k]) for k in range(n, 0, -4)]\n"
    "            client._acks[:n] = b''.join(acks)\n"
    "        client._left = n - client._at",
)  # fmt: skip

WRONG = {
    # --- messages out ---
    "dup forgotten": Wrong(
        Mistake(core, "_fetch", "ring[at + _ENTRY] |= _AGAIN", "pass"),
        *_single("up=1 window=1", "31-2.1-DUP"),
    ),
    "dup always": Wrong(
        Mistake(core, "_fetch", "if state & _AGAIN:", "if state != _PUBLISH:"),
        *_single("up=1 window=1" + _OFFLINE, "31-2.1-DUP"),
    ),
    "dup of pubrel forgotten": Wrong(
        Mistake(core, "release_one", "client.level > 3", "client.level > 2"),
        *_single("up=2 window=1", "31-2.1-DUP"),
    ),
    "dup only in the window": Wrong(
        Mistake(
            core, "bring", "        client._behind -= 1",
            "        if not client._again:\n"
            "            client._ring[at] &= ~_AGAIN\n"
            "        client._behind -= 1",
        ),
        *_single("up=11 window=1", "31-2.1-DUP"),
    ),
    "id reused": Wrong(
        Mistake(core, "accept", "packet_id = client._id % 65535 + 1", "packet_id = 1"),
        *_single("up=22 window=2", "31-2.4-ID"),
    ),
    "pubrels newest first": Wrong(
        Mistake(
            core, "_release",
            "        if ring[at] & 0xF0 == _OWED:\n"
            "            release_one(client, at)\n"
            "        at = entry_after(client, at)\n",
            "        if ring[at] & 0xF0 == _OWED:\n"
            "            ats = [at] + (ats if at != client._rec else [])\n"
            "        elif at == client._rec:\n"
            "            ats = []\n"
            "        at = entry_after(client, at)\n"
            "    for k in ats if at != client._rec else ():\n"
            "        release_one(client, k)\n",
        ),
        *_single("up=22 window=2", "31-4.3-STAGE", "MQTT-4.6.0-4"),
    ),
    "pubrel at once": Wrong(
        Mistake(core, "on_ack", "client.level > 3 and at != client._rec", "at != client._rec"),
        *_single("up=22 window=2", "31-4.3-STAGE"),
    ),
    "pubrel that did not go out forgotten": Wrong(
        Mistake(core, "close", "acks[n] & 0xF0 == 0x60", "False"),
        *_hard("up=2222 down=11111111 start=offline size=20 serve=20 pressure=60",
               "31-2.1-DUP"),
    ),
    "publish after pubrel": Wrong(
        Mistake(core, "_fetch", "state >= _OWED", "state > 255"),
        *_single("up=2 window=1", "MQTT-4.3.3-6"),
    ),
    "publish after pubrel and reset": Wrong(
        Mistake(
            core, "bring", "        client._behind -= 1",
            "        client._ring[at] = min(client._ring[at], _PUBREC | _AGAIN)\n"
            "        client._behind -= 1",
        ),
        *_single("up=2 window=1", "MQTT-4.3.3-6"),
    ),
    "oldest not resent": Wrong(
        Mistake(
            core, "_rewind", "client._next = client._rec = client._head",
            "client._next = client._rec = client._head\n"
            "    if client.inflight > 1:\n"
            "        client._next = entry_after(client, client._head)",
        ),
        *_single("up=11 window=2", "MQTT-4.6.0-1"),
    ),
    "nothing resent": Wrong(
        Mistake(core, "_rewind", "client._again = client.inflight", "client._again = 0"),
        *_single("up=1 window=1", "termination"),
    ),
    "new before resend": Wrong(
        Mistake(core, "next_entry", "if ring[at] and", "if ring[at] and not ring[at] & 8 and"),
        *_single("up=111 window=2", "MQTT-4.6.0-1", "31-2.1-DUP"),
    ),
    "new behind a reset overtakes": Wrong(
        Mistake(core, "accept", "-1 if client._behind and", "-1 if False and"),
        *_single("up=222 window=1 start=offline", "MQTT-4.6.0-1", "IndexError"),
    ),
    "window exceeded": Wrong(
        Mistake(core, "_has_next", "< client._window", "<= client._window"),
        *_single("up=11 window=1", "RT-INFLIGHT", "RT-MQUEUE"),
    ),
    "accepted and lost with the stream": Wrong(
        Mistake(
            core, "_send",
            "    if packet_id:\n        client.queued += 1\n        client._tail = at + n\n"
            "    is_next = client.is_connected\n"
            "    if is_next and (client._acks_n or client._left or client._first):\n"
            "        is_next = client._behind  # a new local would need a frame from the heap\n"
            "        _pump(client, ticks_ms())  # these come first, and behind them what is new\n"
            "        # _pump() may have brought a message from the store to this place.\n"
            "        is_next = not packet_id and not client._left"
            " and client._behind == is_next\n"
            "    if packet_id:\n",
            "    is_next = client.is_connected\n"
            "    if is_next and (client._acks_n or client._left or client._first):\n"
            "        _pump(client, ticks_ms())\n"
            "        is_next = not client._left\n"
            "    if packet_id:\n        client.queued += 1\n        client._tail = at + n\n",
        ),
        *_hard("up=1212 down=12121212 serve=20 pressure=40 size=20", "31-4.1-Q1"),
    ),
    "dead link refuses": Wrong(
        Mistake(core, "accept", "packet_id or -_NETWORK", "-_NETWORK"),
        *_hard(
            "up=11111111 down=11111111 serve=8 window=8 pace=2 size=20 pressure=30 hasty=1"
            " latency_ms=3 spread_ms=2",
            "MQTTError", "publish",
        ),
    ),
    "qos 0 sent again": Wrong(
        Mistake(core, "_fetch", "0 if state == _PUBLISH else state & ~_AGAIN", "state & ~_AGAIN"),
        *_single("up=1020 window=1 start=offline keep_qos0=1", "31-4.1-Q0", "MQTT-4.3.1-1"),
    ),
    "no retry": Wrong(
        Mistake(core, "_due_in", "client._retry_ms and (", "False and ("),
        *_single("up=1 window=1", "termination"),
    ),
    # --- messages in ---
    "held id forgotten": Wrong(
        Mistake(core, "_deliver", "hold(client, packet_id, client._now)", "pass"),
        *_single("down=2 serve=1", "MQTT-4.3.3-10"),
    ),
    "ack before handler": Wrong(
        Mistake(
            core, "_deliver", "    client._is_busy = True\n    if is_whole:",
            "    if qos:\n"
            "        owe(client, qos + 3 << 4, packet_id)\n"
            "        _pump(client, client._now)\n"
            "    client._is_busy = True\n    if is_whole:",
        ),
        *_single("down=1 serve=1", "MQTT-4.3.2-4", "31-3.3-QOS2RX"),
    ),
    "ack in spite of an error": Wrong(
        Mistake(
            core, "step", "            client._is_busy = False\n",
            "            client._is_busy = False\n"
            "            if client._message.qos:\n"
            "                m = client._message\n"
            "                owe(client, m.qos + 3 << 4, m.packet_id)\n",
        ),
        *_single("down=1 serve=1", "31-3.3-QOS2RX", "MQTT-4.3.2-4"),
    ),
    "acks backwards": Wrong(_ACKS_BACKWARDS, *_single("down=11 serve=2", "MQTT-4.6.0-2")),
    "pubrecs backwards": Wrong(_ACKS_BACKWARDS, *_single("down=22 serve=2", "MQTT-4.6.0-3")),
    "answers overwritten while half sent": Wrong(
        Mistake(core, "owe", "n = client._acks_n", "n = 0 if client._left else client._acks_n"),
        *_hard("down=111111 serve=8 spread_ms=1", "termination", "MQTT-4.6.0-2",
                     "31-3.3-QOS2RX", "MQTT-4.3.2-4", "MQTT-4.3.3-11"),
    ),
    "pubrel unanswered": Wrong(
        Mistake(
            core.MQTTClient, "_handle", "        _unhold(self, number)\n",
            "        if set_of(self, number) < 0:\n"
            "            return\n"
            "        _unhold(self, number)\n",
        ),
        *_single("down=2 serve=1", "MQTT-4.3.3-11"),
    ),
    "starved without end": Wrong(
        Mistake(core, "tick", "client._is_starved and not (client._held_n or", "False and not ("),
        *_single("down=2222 held=1 serve=3", "termination"),
    ),
    "starved on the next connection": Wrong(
        Mistake(core, "close", "client._is_starved = False", "False"),
        *_single("down=2222 held=1 serve=3", "termination"),
    ),
    "bursts find no room": Wrong(
        Mistake(core, "is_new", "client._held_n >= client._places", "client._held_n >= 9"),
        *_hard("down=" + "2" * 30 + " serve=30", "31-4.1-Q1", "31-4.1-Q2"),
    ),
    "read and slept over": Wrong(
        Mistake(
            MQTTClient, "next_due_ms", "self._start != self._end and not self._lacks", "False"
        ),
        *_session("down=111 serve=2 reuse=1 store=ram", "31-4.1-Q1"),
    ),
    "deaf while a packet waits for room": Wrong(
        Mistake(core, "step", "while handled < 64:", "while handled < 64 and not client._left:"),
        *_hard(
            "up=2222 down=11111111 start=offline size=20 serve=20 pressure=60",
            "termination", "31-2.2-KA", "connection",
        ),
    ),
    "handler that closes the stream overlooked": Wrong(
        Mistake(core, "_deliver", "if client._stream:", "if True:"),
        *_hard("up=1112 down=12 window=1 queue=1 overflow=drop_oldest inside=disconnect",
                     "AttributeError"),
    ),
    # --- connections and sessions ---
    "no ping": Wrong(
        Mistake(core, "_due_in", "if client.keepalive:", "if False:"),
        *_single("up=1 window=1", "31-2.2-KA", "termination"),
    ),
    "each ping moves the deadline": Wrong(
        Mistake(MQTTClient, "ping", "if self._ping_at is None:", "if True:"),
        *_hard("down=1 keepalive=20 ping_ms=5000", "termination"),
    ),
    "pubrec outlives its session": Wrong(
        Mistake(core, "_renew", "_PUBREC if state > _PUBREC else state", "state"),
        *_session("up=22 window=2 sessions=cr late=1", "termination"),
    ),
    "held ids outlive their session": Wrong(
        Mistake(
            core, "_renew",
            "    for k in range(1, client._held_end, 3):\n"
            "        client._held[k] = 0  # the store looks there, too\n"
            "    client.inflight = client._again = client._held_n = client._held_end = 0\n",
            "    client.inflight = client._again = 0\n",
        ),
        *_session("down=222 serve=2 level=4 sessions=ckr subscribe=1", "MQTT-4.3.2-4"),
    ),
    "clean session does not end the one before": Wrong(
        Mistake(
            MQTTClient, "_on_connack", "self._is_clean or self._was_clean",
            "not self._is_clean and self._was_clean",
        ),
        *_session("up=22 window=2 sessions=cr late=1", "31-3.5-PUBREC", "31-2.1-DUP"),
    ),
    "ids from 1 after a reset": Wrong(
        Mistake(MQTTClient, "__init__", "random.getrandbits(16) % 65535", "0"),
        *_session("up=2222 window=1 pace=1 store=ram", "MQTT-4.3.3-1"),
    ),
    "certificate error not caught": Wrong(
        Mistake(core, "lose", "not isinstance(cause, _STREAM_ERRORS)",
                "not isinstance(cause, OSError)"),
        *_single("up=1 window=1", "ValueError"),
    ),
    # --- the store ---
    "barrier missing": Wrong(
        Mistake(core, "_pump", "client._commit()", "pass"),
        *_single("down=2 serve=1", "MQTT-4.3.3-10"),
    ),
    "pubrec not kept": Wrong(
        Mistake(core, "on_ack", "if client._store:", "if client._store and first != _PUBREC:"),
        *_single("up=2 window=1", "MQTT-4.3.3-6"),
    ),
    "held id not kept": Wrong(
        Mistake(core, "_deliver", "client._store.note(_PUBLISH, packet_id)", "pass"),
        *_single("down=2 serve=1", "MQTT-4.3.3-10"),
    ),
    "opening not kept": Wrong(
        Mistake(MQTTClient, "_on_connack", "self._store.note(0x20, not self._is_clean)", "pass"),
        *_single("up=1 window=1" + _OFFLINE, "31-2.1-DUP"),
    ),
    "deferred and never committed offline": Wrong(
        Mistake(MQTTClient, "_rest", "self._store.tidy()", "pass"),
        *_hard("up=22 start=offline reboot=1 deferred=1", "31-4.1-Q2"),
    ),
    "what cannot be read is given up": Wrong(
        Mistake(
            Journal, "fetch",
            "    where = self._find(number, True) or self._find(number, True)\n",
            "    try:\n"
            "        where = self._find(number, True)\n"
            "    except MQTTError:\n"
            "        where = 0\n",
        ),
        *_hard("up=111111 size=40 start=offline store=journal reboot=1", "overflow"),
    ),
    "what cannot be read is taken for sent": Wrong(
        Mistake(
            core, "bring",
            "        client._tail = at + client._store.fetch(client._ring, at)\n"
            "        client._behind -= 1\n",
            "        client._behind -= 1\n"
            "        client._tail = at + client._store.fetch(client._ring, at)\n",
        ),
        *_hard("up=111111 size=40 start=offline store=journal reboot=1",
                     "31-4.3-WINDOW", "31-4.1-Q1", "termination"),
    ),
    # --- queueing ---
    "ordered without sync": Wrong(
        Mistake(queueing, "extend", "self._commit = self._store.sync", "pass"),
        *_single("up=111 start=offline ordered=1", "MQTT-4.6-RM1"),
    ),
    "too old and kept": Wrong(
        Mistake(queueing, "extend", "self._passed() < self._least or self._is_busy > 1", "True"),
        *_hard("up=1111 window=1 start=offline age=5", "max_age"),
    ),
    "given up and nobody is told": Wrong(
        Mistake(MQTTClient, "give_up", "self._tell_drop(at, packet_id, reason)", "pass"),
        *_single("up=1112 window=1 queue=1 overflow=drop_oldest", "31-4.1-Q1"),
    ),
    # --- level 5 ---
    "5: window of the broker ignored": Wrong(
        Mistake(v5.MQTTClient, "_on_accept", "said(_RECEIVE) or 65535", "65535"),
        *_session("up=222 window=3 level=5 receive=1", "MQTT-3.3.4-7"),
    ),
    "5: topic alias of another connection": Wrong(
        Mistake(v5.MQTTClient, "_on_accept", "[None] * n", 'getattr(self, "_topics", [None] * n)'),
        *_session("up=11111 window=4 pace=1 level=5 aliases=1 expiry=20", "MQTT-3.3.2-8"),
    ),
    "5: flow goes on after a refusal": Wrong(
        Mistake(v5.MQTTClient, "_on_other", "n > 2 and code > 127 and kind < 6", "False"),
        *_session("up=222 window=3 level=5 receive=1", "31-3.5-PUBREC"),
    ),
    "5: refused and nobody is told": Wrong(
        Mistake(v5.MQTTClient, "_on_refusal", "self._tell_drop(at, packet_id, reason)", "pass"),
        *_session("up=111 window=3 level=5 receive=1", "MQTT-4.3.3-5"),
    ),
    "5: sent again on one connection": Wrong(
        Mistake(
            v5.MQTTClient, "__init__",
            'core.check_range("retry_interval at level 5", self._retry_ms // 1000, 0, 0)',
            "self._retry_ms = 30000",
        ),
        *_session("up=222 window=3 level=5 receive=1", "MQTT-4.4.0-1"),
    ),
    "5: age not counted down": Wrong(
        Mistake(v5.MQTTClient, "_fits", "if left_ms:", "if False:"),
        *_session("up=1212 down=12 window=1 start=offline level=5 talk=1 age=300",
                     "max_age"),
    ),
    "5: larger than the broker takes": Wrong(
        Mistake(v5.MQTTClient, "_refusal", "> self._most_bytes", "> 65535"),
        *_session("up=2212 window=3 size=9 grow=6 buffer=200 level=5 most=30",
                     "MQTT-3.2.2-15"),
    ),
    "5: own receive maximum not kept": Wrong(
        Mistake(v5.MQTTClient, "_make_connect", "most_in or len(self._held) // 3", "65535"),
        *_session("down=222 held=2 serve=3 level=5", "connection"),
    ),
    "5: session expiry not said": Wrong(
        Mistake(v5.MQTTClient, "_make_connect", "_EXPIRY, self._expiry", "_EXPIRY, 0"),
        *_session("up=222 window=3 level=5 receive=1", "MQTT-3.1.2-23"),
    ),
    "5: keep alive of the broker ignored": Wrong(
        Mistake(v5.MQTTClient, "_on_accept", " if n is None else n", ""),
        *_session("up=11 down=21 level=5 alive=20 talk=1 subscribe=1", "31-2.2-KA"),
    ),
    "5: session gone and not noticed": Wrong(
        Mistake(MQTTClient, "_on_connack", "self._was_clean or self.level > 3 and not is_present",
                "self._was_clean"),
        *_session("up=22222 window=4 pace=1 level=5 aliases=1 expiry=20",
                     "31-2.1-DUP", "31-3.5-PUBREC", "31-4.1-Q2", "MQTT-4.3.3-6"),
    ),
}  # fmt: skip
