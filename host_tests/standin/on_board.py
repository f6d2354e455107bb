"""Runs under MicroPython: packets of all three levels, written, taken apart, shown."""

from tools.standin import packets as p

some = p.properties(message_expiry=7, user_property=[(b"k", b"v"), (b"k", b"w")])
stream = bytearray(p.publish(b"t", b"x" * 300, 1, 5, 1, 0, some) + p.pubrec(7, 0x97) + b"\x30")
whole = p.take(stream)
print(p.describe(whole, 5), sorted(p.properties_of(whole).items()))
print(p.describe(p.take(stream)), p.take(stream), bytes(stream))
hello = p.Connect(p.connect(b"n", 0x2E, 9, b"w", b"off", level=5))
print(hello.level, hello.keepalive, hello.client_id, hello.will_topic, hello.will_message)
print(p.filters(p.subscribe(1, (b"a", 1), properties=p.NO_PROPERTIES), 5))
