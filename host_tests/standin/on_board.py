"""Runs under CPython and MicroPython: packets of all three levels, a clock, a flash."""

from tools.standin import packets as p
from tools.standin.clock import Clock
from tools.standin.ramflash import RamFlash

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
