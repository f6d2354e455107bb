"""Runs under CPython and MicroPython: clock, flash, streams.  Packets are in all dialogues."""

from host_tests.standin import packets as p
from host_tests.standin.clock import Clock
from host_tests.standin.ramflash import RamFlash
from host_tests.standin.sockets import Sockets
from host_tests.standin.stream import FixedStream, ScriptedStream, WatchfulStream


def error_of(call, *args):
    try:
        call(*args)
    except (AssertionError, OSError) as error:
        return str(error)


assert p.filters(p.subscribe(1, (b"a", 1), properties=p.NO_PROPERTIES), 5) == [(b"a", 1)]

clock = Clock()
start = clock.ticks_ms()
clock.sleep_ms(2600)
assert clock.ticks_ms() == 100 < start and clock.ticks_diff(clock.ticks_ms(), start) == 2600
clock.now_ms += 7 << 26  # days
assert clock.ticks_diff(clock.ticks_add(clock.ticks_ms(), 5), clock.ticks_ms()) == 5

flash = RamFlash(2, 8)
flash.writeblocks(0, b"\x0f", 3)
flash.failures = 1
assert "5" in error_of(flash.writeblocks, 0, bytes(8))
assert flash.data == b"\xff" * 3 + b"\x0f" + b"\xff" * 12
flash.writeblocks(1, bytes(8))
flash.ioctl(6, 0)
assert flash.data == b"\xff" * 8 + bytes(8)
assert (flash.erased, flash.ioctl(4, 0), flash.ioctl(5, 0)) == (2, 2, 8)

buf = bytearray(8)
scripted = ScriptedStream(read_most=2, write_most=3)
scripted.answer(b"hello", b"yes")
assert scripted.write(b"hello", 0, 5) == 3
assert scripted.write(b"hello", 3, 2) is None is scripted.readinto(buf, 8)
assert scripted.write(b"hello", 3, 2) == 2 == scripted.readinto(buf, 8)
assert buf[:2] == b"ye" and scripted.take() == b""

fixed = FixedStream(read_most=2, write_most=8)
fixed.answer(b"01", b"abc")
assert fixed.readinto(buf, 8) == 2 and buf[:2] == b"ab"
assert fixed.write(b"0123456789", 0, 10) == 8 and fixed.take() == b"234567"

watchful = WatchfulStream(b"abc", 2, True, True)
assert [watchful.readinto(buf, 8) for _ in range(4)] == [2, None, 1, 0]
assert watchful.write(b"0123456789", 0, 10) == 5
assert error_of(watchful.readinto, buf, 9) == "reads 9 bytes into a buffer of 8"

sockets = Sockets(lambda host, port: (host, port))
assert sockets.getaddrinfo("broker", 1883)[0][-1] == ("broker", 1883) == sockets.socket()
print("all is as it should be")
