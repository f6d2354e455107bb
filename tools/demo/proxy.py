"""A TCP proxy on the loopback between a client and its broker that breaks on command.

It forwards both ways, cuts connections at once or in the middle of an MQTT packet,
holds the link still, and can record everything as a pcap file.  For demo, soak and
tests: the client connects to `port` instead of the broker's.
"""

import contextlib
import socket
import struct
import threading
from pathlib import Path

from tools.packets import size_of

from .listener import Listener
from .tap import BROKER, CLIENT, Capture

_PIECE_BYTES = 65536
_CONNECT_S = 5.0


class Proxy:
    """Forwards `port` (chosen freely) to `broker_port` on 127.0.0.1 from creation on.

    `capture` is the pcap file to write.  `cuts` counts the connections cut on command,
    `cuts_in_packet` those of them with half an MQTT packet forwarded.
    """

    def __init__(self, broker_port: int, capture: Path | None = None):
        self.broker_port = broker_port
        self.cuts = self.cuts_in_packet = self.connections = 0
        self._capture = Capture(capture) if capture else None
        self._lock = threading.Lock()
        self._flows: set[_Flow] = set()
        self._pending: tuple[int, int] | None = None
        self._may_pass = threading.Event()
        self._may_pass.set()
        self._listener = Listener(self._join)
        self.port = self._listener.port

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening, close every connection, finish the pcap file."""
        self._listener.close()
        self._may_pass.set()
        for flow in self._open_flows():
            flow.end(BROKER)
        if self._capture:
            self._capture.close()

    def cut(self) -> int:
        """Cut all connections now -> how many there were."""
        flows = self._open_flows()
        for flow in flows:
            self._cut(flow)
        return len(flows)

    def cut_in_packet(self, after_bytes: int = 0, sender: int = CLIENT) -> None:
        """Cut the connection on which `sender` next sends `after_bytes` more bytes,
        at the first place from there on that is inside an MQTT packet."""
        with self._lock:
            self._pending = (sender, after_bytes)

    def hold(self) -> None:
        """Forward nothing until `release()`: the link is there and dead."""
        self._may_pass.clear()

    def release(self) -> None:
        self._may_pass.set()

    def _open_flows(self) -> list["_Flow"]:
        with self._lock:
            return list(self._flows)

    def _join(self, client: socket.socket) -> None:
        try:
            broker = socket.create_connection(("127.0.0.1", self.broker_port), _CONNECT_S)
        except OSError:
            client.close()
            return
        broker.settimeout(None)
        flow = _Flow((client, broker), self._capture.connection() if self._capture else None)
        with self._lock:
            self._flows.add(flow)
            self.connections += 1
        for sender in (CLIENT, BROKER):
            threading.Thread(target=self._forward, args=(flow, sender), daemon=True).start()

    def _forward(self, flow: "_Flow", sender: int) -> None:
        try:
            while data := flow.receive(sender):
                self._may_pass.wait()
                length = self._allowed(flow, sender, data)
                flow.send(sender, data[:length])
                if length < len(data):
                    self._cut(flow)
                    break
        except OSError:
            pass
        flow.end(sender)
        with self._lock:
            self._flows.discard(flow)

    def _allowed(self, flow: "_Flow", sender: int, data: bytes) -> int:
        # -> how many bytes of `data` go through before a pending cut.
        edges = flow.edges[sender]
        with self._lock:
            if self._pending is None or self._pending[0] != sender:
                edges.feed(data)
                return len(data)
            left = self._pending[1]
            for index in range(len(data)):
                if index >= left and edges.is_inside:
                    self._pending = None
                    return index
                edges.feed(data[index : index + 1])
            self._pending = (sender, max(left - len(data), 0))
            return len(data)

    def _cut(self, flow: "_Flow") -> None:
        with self._lock:
            if not flow.is_open:
                return
            self.cuts += 1
            self.cuts_in_packet += any(edges.is_inside for edges in flow.edges)
        flow.cut()


class _Flow:
    """Two sockets that belong together, by sender."""

    def __init__(self, sockets, tap):
        self._sockets = sockets
        self._tap = tap
        self.is_open = True
        self.edges = (_Edges(), _Edges())

    def receive(self, sender):
        return self._sockets[sender].recv(_PIECE_BYTES)

    def send(self, sender, data):
        # Recorded before it is sent, so that no answer is recorded before it.
        if self._tap and data:
            self._tap.data(sender, data)
        self._sockets[1 - sender].sendall(data)

    def end(self, sender):
        if self.is_open:
            self._close()
            if self._tap:
                self._tap.end(sender)

    def cut(self):
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._close()
        if self._tap:
            self._tap.cut()

    def _close(self):
        self.is_open = False
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)  # wakes the thread that receives
            sock.close()


class _Edges:
    """Follows one direction of MQTT: is the next byte inside a packet or a new one?"""

    def __init__(self):
        self._left = 0  # bytes of the packet still to come
        self._head = bytearray()  # of a packet whose size is not known yet

    @property
    def is_inside(self) -> bool:
        return self._left > 0 or len(self._head) > 0

    def feed(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            if self._left:
                passed = min(self._left, len(data) - at)
                self._left -= passed
                at += passed
                continue
            self._head.append(data[at])
            at += 1
            try:
                size = size_of(self._head)
            except ValueError:  # no MQTT: a packet may begin at the next byte
                self._head.clear()
                continue
            if size:
                self._left = size - len(self._head)
                self._head.clear()
