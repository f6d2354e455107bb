"""A bundle to many devices over MQTT, some at a time: docs/guides/updates.md has the messages.

`Rollout` does no I/O: messages and the time go in, messages come out.  A device says how
much it has; what it does not confirm is sent again from there, after resets of its own,
of the broker or of this program.  Who may publish on its topic could say that too: what
lacks the proof by the fleet's key, over a nonce of this rollout, is counted and no more.
"""

import contextlib
import csv
import hashlib
import secrets
import time
from collections import deque
from dataclasses import dataclass
from hmac import compare_digest

import paho.mqtt.client as paho

from tools.terminal import printable

from .config import keys
from .errors import BoardError
from .fleetkey import ANSWER, proof
from .places import shown
from .watch import check_answer

WINDOW = 4  # chunks on the way
_RETRY_S = 10
_STAGED_RETRY_S = 60  # the device restarts, and its last answer may be lost
_WAIT_S = 0.2
_AGAIN_S = 1  # from one try to connect to the next
_QUIET_S = 30
_MOST_REFUSALS = 20
_NONCE_BYTES = 8
_MOST_DIGITS = 10
WAITING, RUNNING, FAILED = "waiting", "running", "failed"


@dataclass
class Device:
    """One device: `state` is what it last said, `have` how many bytes it confirmed."""

    name: str
    root: str  # of its topics
    state: str = WAITING
    why: str = ""
    have: int = 0
    sent: int = 0
    is_offered: bool = False
    heard_at: float = 0.0
    asked_at: float = 0.0
    unproven: int = 0  # answers without proof

    @property
    def is_over(self):
        return self.state in (RUNNING, FAILED)


class Rollout:
    """`devices`, whose fleet has `key`, take `bundle`, `at_once` of them at a time.

    A device that says nothing for `patience_s` has failed.  When twenty have refused it or
    gone back, and none runs it, the others are left alone.
    """

    def __init__(self, bundle, devices, key, at_once=20, patience_s=900.0):
        self.bundle = bundle
        self.nonce = secrets.token_bytes(_NONCE_BYTES)
        self._key = key
        self.id = hashlib.sha256(bundle).digest()[:8]
        self.devices = {device.root: device for device in devices}
        self._waiting = deque(devices)
        self._active: list = []
        self._refusals = 0
        self._at_once = at_once
        self._patience_s = patience_s

    @property
    def is_over(self):
        return all(device.is_over for device in self.devices.values())

    def summary(self):
        """How far it is, in one line."""
        states = [device.state for device in self.devices.values()]
        running, failed = states.count(RUNNING), states.count(FAILED)
        under_way = len(states) - running - failed - states.count(WAITING)
        return f"{running} of {len(states)} run it, {under_way} under way, {failed} failed"

    def text_of(self, device):
        if device.state == "sending":
            return f"sending {100 * device.have // len(self.bundle) // 10 * 10} %"
        return f"{device.state}: {device.why}" if device.why else device.state

    def work(self, now):
        """What is to be published now: (topic, payload) of each; call it every second or so."""
        self._active = [device for device in self._active if not device.is_over]
        runs = any(device.state == RUNNING for device in self.devices.values())
        if self._refusals >= _MOST_REFUSALS and not runs:
            for device in self._waiting:
                device.state, device.why = FAILED, "not tried, as no other one runs it"
            self._waiting.clear()
        while self._waiting and len(self._active) < self._at_once:
            device = self._waiting.popleft()
            device.state, device.heard_at, device.asked_at = "offered", now, -_RETRY_S
            self._active.append(device)
        for device in self._active:
            pause_s = _STAGED_RETRY_S if device.state == "staged" else _RETRY_S
            if now - device.heard_at >= self._patience_s:
                device.state, device.why = FAILED, self._silence_of(device)
            elif now - device.asked_at >= pause_s:
                device.asked_at, device.is_offered = now, True
                size = len(self.bundle).to_bytes(4, "big")
                yield f"{device.root}/update", b"O" + self.id + size + self.nonce

    def _silence_of(self, device):
        text = f"no word for {self._patience_s:.0f} s"
        if not device.unproven:
            return text
        return f"{text} with a proof by this key, {device.unproven} without"

    def hear(self, topic, payload, now):
        """A device said something -> what is to be published, as work() has it."""
        device = self.devices.get(topic.removesuffix("/update/answer"))
        said, _, shown_proof = payload.rpartition(b" ")
        name, _, text = said.decode(errors="replace").partition(" ")
        if device is None or name != self.id.hex() or device.state == RUNNING:
            return []
        nonce = self.nonce.hex().encode()
        if not compare_digest(proof(self._key, ANSWER, nonce, topic.encode(), said), shown_proof):
            device.unproven += 1
            return []
        if text == "running":
            device.state, device.why = RUNNING, ""
        if device.is_over:
            return []
        device.heard_at = now
        word, _, rest = text.partition(" ")
        if word == "have":
            have, most_bytes = _numbers(rest)
            return self._send(device, have, most_bytes, now)
        if word == "staged":
            device.state, device.asked_at = "staged", now
        elif word == "busy":
            device.state = "busy"
        elif word in ("refused:", "rolled"):
            self._refusals += 1
            device.state, device.why = FAILED, rest if word == "refused:" else text
        return []

    def _send(self, device, have, most_bytes, now):
        if most_bytes < 1:
            return []
        device.state = "sending"
        # The answer to an offer says where to go on: chunks on the way may be lost.
        device.sent = have if device.is_offered else max(device.sent, have)
        device.is_offered = False
        device.have, device.asked_at = have, now
        messages = []
        while device.sent < min(have + WINDOW * most_bytes, len(self.bundle)):
            data = self.bundle[device.sent : device.sent + most_bytes]
            head = b"C" + self.id + device.sent.to_bytes(4, "big")
            messages.append((f"{device.root}/update", head + data))
            device.sent += len(data)
        return messages


def _numbers(text):
    have, _, most = text.partition(" of ")
    is_good = all(one.isdecimal() and len(one) < _MOST_DIGITS for one in (have, most))
    return (int(have), int(most)) if is_good else (0, 0)


def read_fleet(path, prefix):
    """The devices of the batch file of `make provision`, or one id a line.  BoardError."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        rows = _rows(lines)
    except (csv.Error, UnicodeDecodeError):
        raise BoardError(f"{shown(path)}: not a text file in UTF-8") from None
    if not rows:
        raise BoardError(f"{shown(path)}: no devices; write one id a line")
    devices: dict[str, Device] = {}
    for line, name, site, own_prefix in rows:
        if not keys.is_allowed("client_id", name) or set(name) & set(",;\t"):
            allowed = "a column id, commas between columns, or one id a line"
            raise BoardError(f"{shown(path)}: line {line}: {name!r} is no id; allowed: {allowed}")
        root = "/".join(part for part in (own_prefix or prefix, site, name) if part)
        if root in devices:
            raise BoardError(f"{shown(path)}: line {line}: {name!r} is there already")
        devices[root] = Device(name, root)
    return [*devices.values()]


def _rows(lines):
    # (line number, id, site, prefix) of each device.
    columns = lines[0].split(",") if lines else []
    key = next((name for name in ("id", "client_id") if name in columns), None)
    if key is None:
        return [(i + 1, line.strip(), "", "") for i, line in enumerate(lines) if line.strip()]
    reader = csv.DictReader(lines)
    return [
        (reader.line_num, *((row.get(name) or "") for name in (key, "site", "prefix")))
        for row in reader
    ]


def run(client, rollout, on_line, clock=time):
    """Carry out `rollout` over the paho `client`, until all devices have ended.

    `on_line` hears what is to be told: what becomes of each device and of the connection,
    and how far all is where nothing was told for a while.  `clock` as time is.
    """
    carrier = _Carrier(client, rollout, on_line, clock)
    while not rollout.is_over:
        carrier.step()


class _Carrier:
    # Without a connection its time stands still, as the devices cannot answer, and messages
    # would only wait in `client`.

    def __init__(self, client, rollout, on_line, clock):
        self._client = client
        self._rollout = rollout
        self._on_line = on_line
        self._clock = clock
        self._last_s = self._told_s = clock.monotonic()
        self._tried_s = self._last_s - _AGAIN_S
        self._online_s = 0.0
        self._worked_s = -1.0
        self._is_lost = False
        self._seen = {}
        client.on_connect, client.on_message = self._begin, self._hear
        if client.is_connected():
            self._subscribe()

    def step(self):
        is_open = self._client.loop(timeout=_WAIT_S) == paho.MQTT_ERR_SUCCESS
        if not is_open:
            self._clock.sleep(_WAIT_S)  # loop() did not wait
        now = self._clock.monotonic()
        if self._client.is_connected():
            self._online_s += now - self._last_s
            self._work()
        elif not is_open and now - self._tried_s >= _AGAIN_S:
            self._tried_s = now
            self._reconnect()
        self._last_s = now
        self._tell_devices()
        if now - self._told_s >= _QUIET_S:
            self._tell(self._rollout.summary())

    def _work(self):
        if self._is_lost:
            self._is_lost = False
            self._tell("connected again")
        if self._online_s - self._worked_s >= 1:
            self._worked_s = self._online_s
            self._send(self._rollout.work(self._online_s))

    def _reconnect(self):
        if not self._is_lost:
            self._is_lost = True
            self._tell("the broker is gone; waiting for it")
        with contextlib.suppress(OSError):
            self._client.reconnect()

    def _begin(self, client, *answer):
        check_answer(client, *answer)
        self._subscribe()

    def _subscribe(self):
        # One filter for each site: some brokers do not take 500 at once.
        roots = {root.rpartition("/")[0] for root in self._rollout.devices}
        for root in sorted(roots):
            self._client.subscribe(f"{root}/+/update/answer", 1)

    def _hear(self, client, data, message):
        self._send(self._rollout.hear(message.topic, message.payload, self._online_s))

    def _send(self, messages):
        for topic, payload in messages:
            self._client.publish(topic, payload, qos=1)

    def _tell_devices(self):
        for device in self._rollout.devices.values():
            text = self._rollout.text_of(device)
            if device.state != WAITING and self._seen.get(device.root) != text:
                self._seen[device.root] = text
                self._tell(f"{device.name}: {text}")

    def _tell(self, line):
        self._told_s = self._clock.monotonic()
        self._on_line(printable(line))
