"""Any stream in place of a socket: here a modem at a UART, dialled again when the link ends.

The modem (SIM800 and its likes) connects with AT commands and passes bytes through then;
its DCD line tells whether there is a link.  What `connect()` is given is a function that
opens a stream, and `reconnect()` calls it again.  A stream is anything with these three
methods, which never wait.
"""

import time

from machine import UART, Pin

from umqtt31 import MQTTClient

SERVER = "broker.example"
PORT = 1883
PERIOD_MS = 60_000

uart = UART(1, 115200, tx=Pin(4), rx=Pin(5), rxbuf=1024)
carrier = Pin(6, Pin.IN)  # 0: linked


def order(text, answer, timeout_ms=5000):
    """Send an AT command and wait for `answer`.  Raises OSError."""
    uart.write(text + b"\r\n")
    heard = b""
    start = time.ticks_ms()
    while answer not in heard:
        is_refused = b"ERROR" in heard or b"FAIL" in heard
        if is_refused or time.ticks_diff(time.ticks_ms(), start) > timeout_ms:
            raise OSError("modem: %r after %r" % (heard, text))
        heard += uart.read(1) or b""  # no more than the answer: what follows is MQTT


class Modem:
    """The modem as a stream."""

    def readinto(self, buf, n):
        count = uart.readinto(buf, n)
        if not count:  # None: nothing there yet; 0: the end
            return None if carrier.value() == 0 else 0
        return count

    def write(self, buf, off, n):
        if carrier.value():
            raise OSError("modem: no carrier")
        return uart.write(buf, off, n)  # type: ignore  # every stream of MicroPython can

    def close(self):
        uart.write(b"+++")  # back to commands


def dial():
    """-> a new stream to the broker.  Raises OSError: reconnect() tries again later."""
    order(b"AT+CIPMODE=1", b"OK\r\n")
    order(b'AT+CIPSTART="TCP","%s",%d' % (SERVER.encode(), PORT), b"CONNECT\r\n")
    return Modem()


client = MQTTClient("tank-3", SERVER, PORT, level=3, keepalive=300)
try:
    client.connect(clean_session=False, stream=dial)
except OSError as error:
    print(error)  # reconnect() dials again
count = 0
due = time.ticks_ms()
while True:
    try:
        if time.ticks_diff(time.ticks_ms(), due) >= 0:
            due = time.ticks_add(due, PERIOD_MS)
            count += 1
            client.publish(b"home/tank-3/count", b"%d" % count, qos=2)
        if client.reconnect(100):
            client.poll(100)
    except OSError as error:
        print(error)
