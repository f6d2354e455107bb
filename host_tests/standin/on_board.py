"""Runs under CPython and MicroPython: packets of all three levels, clock, flash, streams."""

from host_tests.standin import packets as p
from host_tests.standin.clock import Clock
from host_tests.standin.ramflash import RamFlash
from host_tests.standin.sockets import Sockets
from host_tests.standin.stream import FixedStream, Misuse, ScriptedStream, WatchfulStream

some = p.properties(message_expiry=7, user_property=[(b"k", b"v"), (b"k", b"w")])
stream = bytearray(p.publish(b"t", b"x" * 300, 1, 5, 1, 0, some) + p.pubrec(7, 0x97) + b"\x30")
whole = p.take(stream)
print(p.describe(whole, 5), sorted(p.properties_of(whole).items()))
print(p.describe(p.take(stream)), p.take(stream), bytes(stream))
hello = p.Connect(p.connect(b"n", 0x2E, 9, b"w", b"off", level=5))
print(hello.level, hello.keepalive, hello.client_id, hello.will_topic, hello.will_message)
print(p.filters(p.subscribe(1, (b"a", 1), properties=p.NO_PROPERTIES), 5))

clock = Clock()
start = clock.ticks_ms()
clock.sleep_ms(2600)
print(start > clock.ticks_ms(), clock.ticks_ms(), clock.ticks_diff(clock.ticks_ms(), start))
clock.now_ms += 7 << 26  # days
print(clock.ticks_diff(clock.ticks_add(clock.ticks_ms(), 5), clock.ticks_ms()))

flash = RamFlash(2, 8)
flash.writeblocks(0, b"\x0f", 3)
flash.failures = 1
try:
    flash.writeblocks(0, bytes(8))
except OSError as error:
    print(error.args[0], bytes(flash.data))
flash.writeblocks(1, bytes(8))
flash.ioctl(6, 0)
print(bytes(flash.data), flash.erased, flash.ioctl(4, 0), flash.ioctl(5, 0))

buf = bytearray(8)
scripted = ScriptedStream(read_most=2, write_most=3)
scripted.answer(b"hello", b"yes")
print(scripted.write(b"hello", 0, 5), scripted.write(b"hello", 3, 2), scripted.readinto(buf, 8))
print(scripted.write(b"hello", 3, 2), scripted.readinto(buf, 8), bytes(buf[:2]), scripted.take())

fixed = FixedStream(8)
fixed.feed(b"abc")
print(fixed.readinto(buf, 2), bytes(buf[:2]), fixed.write(b"0123456789", 0, 10), fixed.take())

watchful = WatchfulStream(b"abc", 2, True, True)
print([watchful.readinto(buf, 8) for _ in range(4)], watchful.write(b"0123456789", 0, 10))
try:
    watchful.readinto(buf, 9)
except Misuse as error:
    print(error)

sockets = Sockets(lambda host, port: (host, port))
print(sockets.getaddrinfo("broker", 1883)[0][-1], sockets.socket())
