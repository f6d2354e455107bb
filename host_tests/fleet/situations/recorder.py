"""What a situation is recorded with: a proxy that writes pcap and can misbehave, clients.

The capture shows what went between the clients and the proxy.  Behind it a broker may be
made worse than it is: `fault` sees every packet and decides what becomes of it.  The
capture's clock can be turned, so that quiet time is written and not waited for.
"""

import contextlib
import socket
import struct
import threading
import time
from pathlib import Path

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from host_tests.patience import until
from host_tests.standin import packets
from tools.demo.tap import BROKER, CLIENT, Capture

_WAIT_S = 10.0
_COMES_S = 0.1  # in which what is under way comes through
HOST = "127.0.0.1"
SHOWN_PORT = 1883  # of the broker in the capture


class Recorder:
    """Clients connect to `port`; what they and the broker say is written to `path`.

    `fault(link, sender, packet)` is called for every MQTT packet and returns True for
    one that is to be passed on.  What is not passed on was never recorded if the broker
    sent it, and is recorded if the client did.
    """

    def __init__(self, broker_port: int, path: Path, shown_port: int = SHOWN_PORT, ahead=None):
        self.fault = lambda link, sender, packet: True
        self._broker_port = broker_port
        self._ahead_ns = ahead or [0]  # of several recorders on one stage the same
        self._capture = _Capture(path, lambda: time.time_ns() + self._ahead_ns[0], shown_port)
        self._links: list[Link] = []
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, *_) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for link in self._links:
            link.end(CLIENT)
        self._capture.close()

    def quiet(self, seconds: float) -> None:
        """Let time pass in the capture, after what is under way has come through."""
        time.sleep(_COMES_S)
        self._ahead_ns[0] += int(seconds * 1e9)

    def beside(self, broker_port: int, shown_port: int) -> "Recorder":
        """A recorder for another broker of this address, with this one's clock."""
        path = self._capture.path.with_name("beside-%d.pcap" % shown_port)
        return Recorder(broker_port, path, shown_port, self._ahead_ns)

    def cut(self, name: bytes | None = None) -> None:
        """Break all connections that are open, or those of one client."""
        for link in list(self._links):
            if name in (None, link.name):
                link.cut()

    def unplug(self, name: bytes) -> None:
        """What this client sends from now on gets lost before the place of the capture."""
        for link in self._links:
            link.is_unplugged |= link.name == name

    def wait_until_closed(self, but: bytes | None = None) -> None:
        """Wait until no connection is open, but for those of one client."""
        until(lambda: not any(link.is_open and link.name != but for link in self._links))

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection((HOST, self._broker_port), _WAIT_S)
            except OSError:  # it is down; the client will try again
                client.close()
                continue
            broker.settimeout(None)
            for one in (client, broker):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = Link(self, client, broker, self._capture.connection())
            self._links.append(link)
            for sender in (CLIENT, BROKER):
                threading.Thread(target=link.pump, args=(sender,), daemon=True).start()


class _Capture(Capture):
    # Shows the broker at a port of its own, and clients at others than those of the first one.
    def __init__(self, path, clock, shown_port):
        super().__init__(path)
        self.clock = clock
        self._shift = shown_port - SHOWN_PORT

    def write(self, frame):
        ports = [int.from_bytes(frame[at : at + 2], "big") for at in (34, 36)]
        more = self._shift * 100
        shown = [port + (self._shift if port == SHOWN_PORT else more) for port in ports]
        parts = (port.to_bytes(2, "big") for port in shown)
        super().write(frame[:34] + b"".join(parts) + frame[38:])


class Link:
    """One connection through the recorder."""

    def __init__(self, recorder, client, broker, tap):
        self._recorder = recorder
        self._sockets = (client, broker)
        self._tap = tap
        self._lock = threading.RLock()
        self.is_open = True
        self.is_unplugged = False
        self.name = b""  # of the client, from its CONNECT

    def pump(self, sender):
        """Pass packets on until the sender closes."""
        rest = bytearray()
        while True:
            try:
                data = self._sockets[sender].recv(65536)
            except OSError:
                data = b""
            if not data:
                break
            rest += data
            while packet := packets.take(rest):
                self._pass(sender, packet)
        self.end(sender)

    def _pass(self, sender, packet):
        with self._lock:
            if not self.is_open:  # the other side has ended it meanwhile
                return
            if packet[0] == 0x10:
                self.name = packets.Connect(packet).client_id
            if sender == CLIENT:
                if self.is_unplugged:
                    return
                self._tap.data(CLIENT, packet)
            if self._recorder.fault(self, sender, packet):
                if sender == CLIENT:
                    self.to_broker(packet)
                else:
                    self.to_client(packet)

    def to_client(self, packet):
        """Send and record a packet as if the broker had sent it."""
        with self._lock, contextlib.suppress(OSError):
            if self.is_open:
                self._tap.data(BROKER, packet)
                self._sockets[CLIENT].sendall(packet)

    def to_broker(self, packet):
        """Send a packet to the broker; the capture does not show it."""
        with contextlib.suppress(OSError):
            self._sockets[BROKER].sendall(packet)

    def end(self, sender):
        """Close both sides in good order, `sender` first."""
        with self._lock:
            if self.is_open:
                self.is_open = False
                self._tap.end(sender)
                self._close()

    def cut(self):
        """Tear the connection."""
        with self._lock:
            if not self.is_open:
                return
            self.is_open = False
            self._tap.cut()
            for one in self._sockets:
                with contextlib.suppress(OSError):
                    linger = struct.pack("ii", 1, 0)
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self._close()

    def _close(self):
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def packet_id(packet):
    """The packet id of a PUBLISH above QoS 0, of an acknowledgement, of a SUBSCRIBE …"""
    if packet[0] >> 4 == packets.PUBLISH:
        return packets.u16(packets.publish_fields(packet)[1])
    return packets.u16(packets.read_id(packet))


def _properties(kind, values):
    found = Properties(kind)
    for name, value in values.items():
        if value is not None:
            setattr(found, name, value)
    return found


class Client:
    """A paho client that waits for each answer.  Options: see `__init__`."""

    def __init__(
        self,
        recorder,
        name,
        level=4,
        clean=True,
        keep_alive_s=60,
        expiry_s=None,
        packet_bytes_max=None,
        receive_max=None,
        will=None,
        user=None,
        manual_ack=False,
        port=None,
    ):
        options = {"protocol": {3: mqtt.MQTTv31, 4: mqtt.MQTTv311, 5: mqtt.MQTTv5}[level]}
        options |= {} if level == 5 else {"clean_session": clean}
        version = mqtt.CallbackAPIVersion.VERSION2
        self.paho = mqtt.Client(version, name, manual_ack=manual_ack, **options)
        self._recorder, self._port = recorder, port or recorder.port
        self.name, self.level = name, level
        self._keep_alive_s, self._clean = keep_alive_s, clean
        said = {"SessionExpiryInterval": expiry_s, "MaximumPacketSize": packet_bytes_max}
        said["ReceiveMaximum"] = receive_max
        self._properties = _properties(PacketTypes.CONNECT, said) if level == 5 else None
        if will:
            self.paho.will_set(*will)
        if user:
            self.paho.username_pw_set(user)
        self.messages: list[bytes] = []
        self._events = {name: threading.Event() for name in ("connect", "subscribe", "leave")}
        self.paho.reconnect_delay_set(1, 1)
        self.paho.on_connect = lambda *_: self._events["connect"].set()
        self.paho.on_subscribe = lambda *_: self._events["subscribe"].set()
        self.paho.on_unsubscribe = lambda *_: self._events["leave"].set()
        self.paho.on_message = lambda _, __, message: self.messages.append(message.payload)

    def connect(self):
        """Connect and wait for CONNACK -> self."""
        self._events["connect"].clear()
        more = {}
        if self.level == 5:
            more = {"clean_start": self._clean, "properties": self._properties}
        self.paho.connect(HOST, self._port, self._keep_alive_s, **more)
        self.paho.loop_start()
        return self.connected()

    def connected(self):
        """Wait until the next CONNACK is there -> self."""
        self._wait("connect")
        return self

    def expect_connect(self):
        """Forget the last CONNACK, for `connected()`."""
        self._events["connect"].clear()

    def subscribe(self, name, qos=1, **options):
        """Subscribe and wait for SUBACK -> self; options are those of level 5."""
        self._events["subscribe"].clear()
        if self.level == 5:
            self.paho.subscribe(name, options=mqtt.SubscribeOptions(qos, **options))
        else:
            self.paho.subscribe(name, qos)
        self._wait("subscribe")
        return self

    def unsubscribe(self, name):
        """Unsubscribe and wait for UNSUBACK."""
        self._events["leave"].clear()
        self.paho.unsubscribe(name)
        self._wait("leave")

    def publish(self, topic, *payloads, qos=1, retain=False, quiet_s=0, **properties):
        """Publish and wait for the acknowledgement of each; behind it `quiet_s` may pass."""
        for payload in payloads:
            sent = self.publish_nowait(topic, payload, qos, retain, **properties)
            sent.wait_for_publish(_WAIT_S)
            if quiet_s:
                self._recorder.quiet(quiet_s)

    def publish_nowait(self, topic, payload, qos=1, retain=False, **properties):
        """Publish without waiting for anything."""
        said = _properties(PacketTypes.PUBLISH, properties) if properties else None
        return self.paho.publish(topic, payload, qos, retain, said)

    def wait(self, count):
        """Wait for that many messages in all."""
        until(lambda: len(self.messages) >= count)

    def disconnect(self):
        """Say goodbye, and give the broker time to read it: what it still sends to a client
        that has closed is not recorded."""
        self.paho.disconnect()
        self.paho.loop_stop()
        time.sleep(_COMES_S)

    def _wait(self, name):
        if not self._events[name].wait(_WAIT_S):
            raise TimeoutError("no answer to %s" % name)
