"""A bundle to many devices over MQTT, some at a time: docs/guides/updates.md has the messages.

`Rollout` does no I/O: messages and the time go in, messages come out.  A device says how
much it has; what it does not confirm is sent again from there, after resets of its own,
of the broker or of this program.
"""

import csv
import hashlib
import time
from collections import deque
from dataclasses import dataclass

from .config import keys
from .errors import BoardError
from .places import shown

WINDOW = 4  # chunks on the way
_RETRY_S = 10
_STAGED_RETRY_S = 60  # its last word may be lost, while it restarts
RUNNING, FAILED = "running", "failed"


@dataclass
class Device:
    """One device: `state` is what it last said, `have` how many bytes it confirmed."""

    name: str
    root: str  # of its topics
    state: str = "waiting"
    why: str = ""
    have: int = 0
    sent: int = 0
    is_offered: bool = False
    heard_at: float = 0.0
    asked_at: float = 0.0

    @property
    def is_over(self):
        """Did it end, well or not?"""
        return self.state in (RUNNING, FAILED)


class Rollout:
    """`devices` take `bundle`, `at_once` of them at a time.

    A device that says nothing for `patience_s` has failed.
    """

    def __init__(self, bundle, devices, at_once=20, patience_s=900.0):
        self.bundle = bundle
        self.id = hashlib.sha256(bundle).digest()[:8]
        self.devices = {device.root: device for device in devices}
        self._waiting = deque(devices)
        self._active: list = []
        self._at_once = at_once
        self._patience_s = patience_s

    @property
    def is_over(self):
        """Has every device ended?"""
        return all(device.is_over for device in self.devices.values())

    def work(self, now):
        """What is to be published now: (topic, payload) of each; call it every second or so."""
        self._active = [device for device in self._active if not device.is_over]
        while self._waiting and len(self._active) < self._at_once:
            device = self._waiting.popleft()
            device.state, device.heard_at, device.asked_at = "offered", now, -_RETRY_S
            self._active.append(device)
        for device in self._active:
            if now - device.heard_at >= self._patience_s:
                device.state, device.why = FAILED, f"no word for {self._patience_s:.0f} s"
            elif now - device.asked_at >= _pause_s(device):
                device.asked_at, device.is_offered = now, True
                size = len(self.bundle).to_bytes(4, "big")
                yield f"{device.root}/update", b"O" + self.id + size

    def hear(self, topic, payload, now):
        """A device said something -> what is to be published, as work() has it."""
        device = self.devices.get(topic.removesuffix("/update/answer"))
        name, _, text = payload.decode(errors="replace").partition(" ")
        if device is None or name != self.id.hex() or device.state == RUNNING:
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
            device.state, device.why = FAILED, rest if word == "refused:" else text
        return []

    def _send(self, device, have, most_bytes, now):
        if most_bytes < 1:
            return []
        device.state = "sending"
        # The answer to an offer says where to go on; what was on the way may be lost.
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


def _pause_s(device):
    return _STAGED_RETRY_S if device.state == "staged" else _RETRY_S


def _numbers(text):
    have, _, most = text.partition(" of ")
    return (int(have), int(most)) if have.isdecimal() and most.isdecimal() else (0, 0)


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


def run(client, rollout, on_change):
    """Carry out `rollout` over the connected paho `client`; `on_change` hears each device
    whenever its state or progress changes.  Returns when all devices have ended."""
    seen: dict[str, tuple] = {}
    # One for each site; 500 at once are more than some brokers take.
    filters = {f"{root.rpartition('/')[0]}/+/update/answer" for root in rollout.devices}

    def send(messages):
        for topic, payload in messages:
            client.publish(topic, payload, qos=1)

    def hear(client, data, message):
        send(rollout.hear(message.topic, message.payload, time.monotonic()))

    def subscribe():
        for one in filters:
            client.subscribe(one, 1)

    def begin(client, data, flags, reason, properties):
        if reason.is_failure:
            raise BoardError(f"the broker refuses: {reason}")
        subscribe()

    client.on_message, client.on_connect = hear, begin
    subscribe()
    last_s = 0.0
    while not rollout.is_over:
        client.loop(timeout=0.2)
        if not client.is_connected() and time.monotonic() - last_s > 1:
            _reconnect(client)
        if time.monotonic() - last_s >= 1:
            last_s = time.monotonic()
            send(rollout.work(last_s))
        _tell(rollout, seen, on_change)


def _tell(rollout, seen, on_change):
    for device in rollout.devices.values():
        now = (device.state, device.have, device.why)
        if seen.get(device.root) != now:
            seen[device.root] = now
            on_change(device)


def _reconnect(client):
    try:
        client.reconnect()
    except OSError:
        pass  # again in a second; patience is counted per device
