"""MiniMQTT with what CircuitPython has and MicroPython lacks: sockets of its own kind, ticks."""

import errno
import socket
import sys
import time


class _Socket:
    # As CircuitPython's.
    def __init__(self, address, timeout, tls):
        self.raw = socket.socket()
        self.raw.connect(address)
        self.raw.settimeout(timeout)
        if tls:
            self.raw = tls.wrap_socket(self.raw, server_hostname="bench")
        self.send = self.raw.write

    def recv_into(self, buffer, size):
        n = self.raw.readinto(buffer, size)
        if n is None:
            raise OSError(errno.ETIMEDOUT)
        return n


class _Connections:
    def get_socket(self, host, port, timeout=None, ssl_context=None, **_):
        return _Socket(socket.getaddrinfo(host, port)[0][-1], timeout, ssl_context)

    def close_socket(self, sock):
        sock.raw.close()


class _Manager:
    def get_connection_manager(pool):
        return _Connections()


sys.modules["adafruit_connection_manager"] = _Manager
sys.modules["adafruit_ticks"] = time

from adafruit_minimqtt.adafruit_minimqtt import MQTT  # noqa: E402
from face import Face  # noqa: E402


class Adapter(Face):
    def __init__(self, port, window=1, timeout=None, keepalive=60, tls=None):
        self.client = MQTT(
            broker="127.0.0.1",
            port=port,
            client_id="bench",
            keep_alive=keepalive,
            recv_timeout=timeout or 10,
            connect_retries=1,
            use_binary_mode=True,
            is_ssl=bool(tls),
            ssl_context=tls,
        )
        self.client.on_message = self.take
        self.step = self.client._wait_for_msg  # what loop() calls again and again

    def take(self, client, topic, payload):
        self.received += 1

    def connect(self, no_delay=True):
        self.client.connect()
        self.no_nagle(self.client._sock.raw, no_delay)

    def subscribe(self, topic, qos):
        self.client.subscribe(str(topic, "utf-8"), qos)

    def publish(self, topic, payload, qos, count, window):
        super().publish(str(topic, "utf-8"), payload, qos, count, window)

    def pause(self, ms):
        time.sleep_ms(ms)
        self.client.loop(1)

    def near_wrap(self):
        self.client._pid = 65530
