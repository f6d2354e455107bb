"""Clients with one mistake each: a line of the library is another one.

They test the simulator: a run that misses one of them proves nothing.
"""

import inspect
import sys
import textwrap

import umqtt31 as core
from host_tests.sim import device, tasks
from umqtt31 import MQTTClient, queueing, v5
from umqtt31.journal import Journal


def make_mistake(monkeypatch, owner, name, *pairs):
    """Until the test is over the second of each two `pairs` stands where the first does, in the
    function `owner.name` of a module or a class; an error if that is not there once."""
    original = getattr(owner, name)
    source = textwrap.dedent(inspect.getsource(original))
    for right, wrong in zip(pairs[::2], pairs[1::2]):
        found = source.count(right)
        assert found == 1, f"{found} times in {name}(): {right}"
        source = source.replace(right, wrong)
    source = textwrap.indent(source, "    ")
    # A method that says super() needs its class.
    made = {}
    text = f"def make(__class__):\n{source}\n    return {name}\n"
    exec(compile(text, name, "exec"), original.__globals__, made)
    function = made["make"](owner)
    if owner.__class__ is type:
        monkeypatch.setattr(owner, name, function)
    else:
        for module in list(sys.modules.values()):
            if getattr(module, name, None) is original:
                monkeypatch.setattr(module, name, function)
    if name == "extend":  # it makes the module's class
        monkeypatch.setattr(owner, "MQTTClient", owner.extend(MQTTClient))
    for module in (device, tasks):
        monkeypatch.setattr(module, "watched", module.watched.__wrapped__)


_ACKS_BACKWARDS = (
    core, "_load",
    "        client._left = client._acks_n - client._at",
    "        n = client._acks_n\n"
    "        if not client._at:\n"
    "            acks = [bytes(client._acks[k - 4 : k]) for k in range(n, 0, -4)]\n"
    "            client._acks[:n] = b''.join(acks)\n"
    "        client._left = n - client._at",
)  # fmt: skip

# A script of which the single faults in the default run meet it, the rules that it breaks, and
# the mistake: where it is, what stands there, and what stands there in its place.
WRONG = {
    # --- messages out ---
    "dup forgotten": ("up=1 window=1", "31-2.1-DUP", core, "_fetch",
        "ring[at + _ENTRY] |= _AGAIN", "pass"),
    "dup always": ("up=1 window=1 start=offline deferred=1", "31-2.1-DUP", core, "_fetch",
        "if state & _AGAIN:", "if state != _PUBLISH:"),
    "dup of pubrel forgotten": ("up=2 window=1", "31-2.1-DUP", core, "release_one",
        "client.level > 3", "client.level > 2"),
    "dup only in the window": ("up=11 window=1", "31-2.1-DUP", core, "bring",
        "        client._behind -= 1",
        "        if not client._again:\n"
        "            client._ring[at] &= ~_AGAIN\n"
        "        client._behind -= 1"),
    "id reused": ("up=22 window=2", "31-2.4-ID", core, "accept",
        "packet_id = client._id % 65535 + 1", "packet_id = 1"),
    "pubrels newest first": ("up=22 window=2", "31-4.3-STAGE MQTT-4.6.0-4", core, "_release",
        "        if ring[at] & 0xF0 == _OWED:\n"
        "            release_one(client, at)\n"
        "        at = entry_after(client, at)\n",
        "        if ring[at] & 0xF0 == _OWED:\n"
        "            ats = [at] + (ats if at != client._rec else [])\n"
        "        elif at == client._rec:\n"
        "            ats = []\n"
        "        at = entry_after(client, at)\n"
        "    for k in ats if at != client._rec else ():\n"
        "        release_one(client, k)\n"),
    "pubrel at once": ("up=22 window=2", "31-4.3-STAGE", core, "on_ack",
        "client.level > 3 and at != client._rec", "at != client._rec"),
    "pubrel that did not go out forgotten": (
        "up=2222 down=11111111 start=offline size=20 serve=20 pressure=60", "31-2.1-DUP", core,
        "close", "acks[n] & 0xF0 == 0x60", "False"),
    "publish after pubrel": ("up=2 window=1", "MQTT-4.3.3-6", core, "_fetch",
        "state >= _OWED", "state > 255"),
    "publish after pubrel and reset": ("up=2 window=1", "MQTT-4.3.3-6", core, "bring",
        "        client._behind -= 1",
        "        client._ring[at] = min(client._ring[at], _PUBREC | _AGAIN)\n"
        "        client._behind -= 1"),
    "oldest not resent": ("up=11 window=2", "MQTT-4.6.0-1", core, "_rewind",
        "client._next = client._rec = client._head",
        "client._next = client._rec = client._head\n"
        "    if client.inflight > 1:\n"
        "        client._next = entry_after(client, client._head)"),
    "nothing resent": ("up=1 window=1", "termination", core, "_rewind",
        "client._again = client.inflight", "client._again = 0"),
    "new before resend": ("up=111 window=2", "MQTT-4.6.0-1 31-2.1-DUP", core, "next_entry",
        "if ring[at] and", "if ring[at] and not ring[at] & 8 and"),
    "new behind a reset overtakes": ("up=222 window=1 start=offline", "MQTT-4.6.0-1 IndexError",
        core, "accept", "-1 if client._behind and", "-1 if False and"),
    "window exceeded": ("up=11 window=1", "RT-INFLIGHT RT-MQUEUE", core, "_has_next",
        "< client._window", "<= client._window"),
    "accepted and lost with the stream": ("up=1212 down=12121212 serve=20 pressure=40 size=20",
        "31-4.1-Q1", core, "_send",
        "        client.queued += 1\n"
        "        client._tail = at + n\n", "        pass\n",
        "not (packet_id or client._left or is_next)\n"
        "    if packet_id:\n",
        "not client._left\n"
        "    if packet_id:\n"
        "        client.queued += 1\n"
        "        client._tail = at + n\n"),
    "dead link refuses": (
        "up=11111111 down=11111111 serve=8 window=8 pace=2 size=20 pressure=30 hasty=1"
        " latency_ms=3 spread_ms=2",
        "MQTTError publish", core, "accept", "packet_id or -_NETWORK", "-_NETWORK"),
    "qos 0 sent again": ("up=1020 window=1 start=offline keep_qos0=1", "31-4.1-Q0 MQTT-4.3.1-1",
        core, "_fetch", "0 if state == _PUBLISH else state & ~_AGAIN", "state & ~_AGAIN"),
    "no retry": ("up=1 window=1", "termination", core, "_due_in",
        "client._retry_ms and (", "False and ("),
    # --- messages in ---
    "held id forgotten": ("down=2 serve=1", "MQTT-4.3.3-10", core, "deliver",
        "hold(client, packet_id, client._now)", "pass"),
    "ack before handler": ("down=1 serve=1", "MQTT-4.3.2-4 31-3.3-QOS2RX", core, "deliver",
        "    client._is_busy = True\n"
        "    if is_whole:",
        "    if qos:\n"
        "        owe(client, qos + 3 << 4, packet_id)\n"
        "        _pump(client, client._now)\n"
        "    client._is_busy = True\n"
        "    if is_whole:"),
    "ack in spite of an error": ("down=1 serve=1", "31-3.3-QOS2RX MQTT-4.3.2-4", core, "step",
        "            client._is_busy = False\n",
        "            client._is_busy = False\n"
        "            if client._message.qos:\n"
        "                m = client._message\n"
        "                owe(client, m.qos + 3 << 4, m.packet_id)\n"),
    "acks backwards": ("down=11 serve=2", "MQTT-4.6.0-2", *_ACKS_BACKWARDS),
    "pubrecs backwards": ("down=22 serve=2", "MQTT-4.6.0-3", *_ACKS_BACKWARDS),
    "answers overwritten while half sent": ("down=111111 serve=8 spread_ms=1",
        "termination MQTT-4.6.0-2 31-3.3-QOS2RX MQTT-4.3.2-4 MQTT-4.3.3-11", core, "owe",
        "n = client._acks_n", "n = 0 if client._left else client._acks_n"),
    "pubrel unanswered": ("down=2 serve=1", "MQTT-4.3.3-11", core.MQTTClient, "_handle",
        "        _unhold(self, number)\n",
        "        if set_of(self, number) < 0:\n"
        "            return\n"
        "        _unhold(self, number)\n"),
    "starved without end": ("down=2222 held=1 serve=3", "termination", core, "tick",
        "client._is_starved and not (client._held_n or", "False and not ("),
    "starved on the next connection": ("down=2222 held=1 serve=3", "termination", core, "close",
        "client._is_starved = False", "False"),
    "bursts find no room": ("down=" + "2" * 30 + " serve=30", "31-4.1-Q1 31-4.1-Q2", core,
        "is_new", "client._held_n >= client._places", "client._held_n >= 9"),
    "read and slept over": ("down=111 serve=2 reuse=1 store=ram", "31-4.1-Q1", MQTTClient,
        "next_due_ms", "self._start != self._end and not self._lacks", "False"),
    "deaf while a packet waits for room": (
        "up=2222 down=11111111 start=offline size=20 serve=20 pressure=60",
        "termination 31-2.2-KA connection", core, "step",
        "while handled < 64:", "while handled < 64 and not client._left:"),
    "handler that closes the stream overlooked": (
        "up=1112 down=12 window=1 queue=1 overflow=drop_oldest inside=disconnect",
        "AttributeError", core, "deliver", "if client._stream:", "if True:"),
    # --- connections and sessions ---
    "no ping": ("up=1 window=1", "31-2.2-KA termination", core, "_due_in",
        "if client.keepalive:", "if False:"),
    "each ping moves the deadline": ("down=1 keepalive=20 ping_ms=5000", "termination", MQTTClient,
        "ping", "if self._ping_at is None:", "if True:"),
    "pubrec outlives its session": ("up=22 window=2 sessions=cr late=1", "termination", core,
        "_renew", "_PUBREC if state > _PUBREC else state", "state"),
    "held ids outlive their session": ("down=222 serve=2 level=4 sessions=ckr subscribe=1",
        "MQTT-4.3.2-4", core, "_renew",
        "    for k in range(1, client._held_end, 3):\n"
        "        client._held[k] = 0  # the store looks there, too\n"
        "    client.inflight = client._again = client._held_n = client._held_end = 0\n",
        "    client.inflight = client._again = 0\n"),
    "clean session does not end the one before": ("up=22 window=2 sessions=cr late=1",
        "31-3.5-PUBREC 31-2.1-DUP", MQTTClient, "_on_connack",
        "self._is_clean or self._was_clean", "not self._is_clean and self._was_clean"),
    "ids from 1 after a reset": ("up=2222 window=1 pace=1 store=ram", "MQTT-4.3.3-1", MQTTClient,
        "__init__", "random.getrandbits(16) % 65535", "0"),
    "certificate error not caught": ("up=1 window=1", "ValueError", core, "lose",
        "not isinstance(cause, _STREAM_ERRORS)", "not isinstance(cause, OSError)"),
    # --- the store ---
    "barrier missing": ("down=2 serve=1", "MQTT-4.3.3-10", core, "_pump",
        "client._commit()", "pass"),
    "pubrec not kept": ("up=2 window=1", "MQTT-4.3.3-6", core, "on_ack",
        "if client._store:", "if client._store and first != _PUBREC:"),
    "held id not kept": ("down=2 serve=1", "MQTT-4.3.3-10", core, "deliver",
        "client._store.note(_PUBLISH, packet_id)", "pass"),
    "opening not kept": ("up=1 window=1 start=offline deferred=1", "31-2.1-DUP", MQTTClient,
        "_on_connack", "self._store.note(0x20, not self._is_clean)", "pass"),
    "deferred and never committed offline": ("up=22 start=offline reboot=1 deferred=1",
        "31-4.1-Q2", MQTTClient, "_rest", "self._store.tidy()", "pass"),
    "what cannot be read is given up": ("up=111111 size=40 start=offline store=journal reboot=1",
        "overflow", Journal, "fetch",
        "    where = self._find(number, True) or self._find(number, True)\n",
        "    try:\n"
        "        where = self._find(number, True)\n"
        "    except MQTTError:\n"
        "        where = 0\n"),
    "what cannot be read is taken for sent": (
        "up=111111 size=40 start=offline store=journal reboot=1",
        "31-4.3-WINDOW 31-4.1-Q1 termination", core, "bring",
        "        client._tail = at + client._store.fetch(client._ring, at)\n"
        "        client._behind -= 1\n",
        "        client._behind -= 1\n"
        "        client._tail = at + client._store.fetch(client._ring, at)\n"),
    # --- queueing ---
    "ordered without sync": ("up=111 start=offline ordered=1", "MQTT-4.6-RM1", queueing, "extend",
        "self._commit = self._store.sync", "pass"),
    "too old and kept": ("up=1111 window=1 start=offline age=5", "max_age", queueing, "extend",
        "not self._age_in() and self._is_busy < 2 and self._give_up_old()", "False"),
    "given up and nobody is told": ("up=1112 window=1 queue=1 overflow=drop_oldest", "31-4.1-Q1",
        MQTTClient, "give_up", "self._tell_drop(at, packet_id, reason)", "pass"),
    # --- level 5 ---
    "5: window of the broker ignored": ("up=222 window=3 level=5 receive=1", "MQTT-3.3.4-7",
        v5.MQTTClient, "_on_accept", "said(_RECEIVE) or 65535", "65535"),
    "5: topic alias of another connection": (
        "up=11111 window=4 pace=1 level=5 aliases=1 expiry=20", "MQTT-3.3.2-8", v5.MQTTClient,
        "_on_accept", "[None] * n", 'getattr(self, "_topics", [None] * n)'),
    "5: flow goes on after a refusal": ("up=222 window=3 level=5 receive=1", "31-3.5-PUBREC",
        v5.MQTTClient, "_on_other", "n > 2 and code > 127 and kind < 6", "False"),
    "5: refused and nobody is told": ("up=111 window=3 level=5 receive=1", "MQTT-4.3.3-5",
        v5.MQTTClient, "_on_refusal", "self.give_up(at, reason)",
        "ring[at], self._again, self.inflight = 0, self._again - 1, self.inflight - 1"),
    "5: sent again on one connection": ("up=222 window=3 level=5 receive=1", "MQTT-4.4.0-1",
        v5.MQTTClient, "__init__",
        'core.check_range("retry_interval at level 5", self._retry_ms // 1000, 0, 0)',
        "self._retry_ms = 30000"),
    "5: age not counted down": ("up=1212 down=12 window=1 start=offline level=5 talk=1 age=300",
        "max_age", v5.MQTTClient, "_fits", "if left_ms:", "if False:"),
    "5: larger than the broker takes": (
        "up=2212 window=3 size=9 grow=6 buffer=200 level=5 most=30", "MQTT-3.2.2-15",
        v5.MQTTClient, "_refusal", "> self._most_bytes", "> 65535"),
    "5: own receive maximum not kept": ("down=222 held=2 serve=3 level=5", "connection",
        v5.MQTTClient, "_make_connect", "most_in or len(self._held) // 3", "65535"),
    "5: session expiry not said": ("up=222 window=3 level=5 receive=1", "MQTT-3.1.2-23",
        v5.MQTTClient, "_make_connect", "_EXPIRY, self._expiry", "_EXPIRY, 0"),
    "5: keep alive of the broker ignored": ("up=11 down=21 level=5 alive=20 talk=1 subscribe=1",
        "31-2.2-KA", v5.MQTTClient, "_on_accept", " if n is None else n", ""),
    "5: session gone and not noticed": ("up=22222 window=4 pace=1 level=5 aliases=1 expiry=20",
        "31-2.1-DUP 31-3.5-PUBREC 31-4.1-Q2 MQTT-4.3.3-6", MQTTClient, "_on_connack",
        "self._was_clean or self.level > 3 and not is_present", "self._was_clean"),
}  # fmt: skip
