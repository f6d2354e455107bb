"""Packets as a broker and a client see them: one table for writing and reading.

The bytes are written out by hand from MQTT 3.1 §3.  `broker` ones are read by the
client, `client` ones are written by it, PUBLISH and the acknowledgements are both.
"""

# name, bytes, qos, retain, dup, packet id, topic, payload
PUBLISHES = [
    ("qos 0", b"\x30\x05\x00\x01tab", 0, 0, 0, 0, b"t", b"ab"),
    ("qos 0 empty", b"\x30\x03\x00\x01t", 0, 0, 0, 0, b"t", b""),
    ("qos 0 retained", b"\x31\x04\x00\x01tx", 0, 1, 0, 0, b"t", b"x"),
    ("qos 1", b"\x32\x06\x00\x01t\x00\x01x", 1, 0, 0, 1, b"t", b"x"),
    ("qos 1 empty", b"\x32\x05\x00\x01t\x00\x0a", 1, 0, 0, 10, b"t", b""),
    ("qos 1 dup", b"\x3a\x06\x00\x01t\xff\xffx", 1, 0, 1, 65535, b"t", b"x"),
    ("qos 2", b"\x34\x06\x00\x01t\x01\x00x", 2, 0, 0, 256, b"t", b"x"),
    ("qos 2 all", b"\x3d\x07\x00\x02a/\x12\x34x", 2, 1, 1, 0x1234, b"a/", b"x"),
    ("utf-8", b"\x30\x07\x00\x04\xc3\xa9\xc2\xb0\x00", 0, 0, 0, 0, b"\xc3\xa9\xc2\xb0", b"\x00"),
    ("127 bytes", b"\x30\x7f\x00\x01t" + b"x" * 124, 0, 0, 0, 0, b"t", b"x" * 124),
    ("128 bytes", b"\x30\x80\x01\x00\x01t" + b"x" * 125, 0, 0, 0, 0, b"t", b"x" * 125),
    ("id like a length", b"\x32\x85\x02\x00\x01t\x80\x80" + b"y" * 256, 1, 0, 0, 0x8080, b"t",
     b"y" * 256),
    ("16383 bytes", b"\x30\xff\x7f\x00\x01t" + b"x" * 16380, 0, 0, 0, 0, b"t", b"x" * 16380),
    ("16384 bytes", b"\x30\x80\x80\x01\x00\x01t" + b"x" * 16381, 0, 0, 0, 0, b"t", b"x" * 16381),
    ("long topic", b"\x34\x8c\x08\x04\x00" + b"T" * 1024 + b"\x00\x07" + b"p" * 8,
     2, 0, 0, 7, b"T" * 1024, b"p" * 8),
]  # fmt: skip

# name, bytes, first byte, packet id
ACKS = [
    ("PUBACK", b"\x40\x02\x00\x01", 0x40, 1),
    ("PUBREC", b"\x50\x02\x01\x00", 0x50, 256),
    ("PUBREL", b"\x62\x02\xff\xff", 0x62, 65535),
    ("PUBCOMP", b"\x70\x02\x12\x34", 0x70, 0x1234),
]

# name, bytes, first byte, body: what else a broker sends
OTHERS = [
    ("CONNACK", b"\x20\x02\x00\x05", 0x20, b"\x00\x05"),
    ("PUBREL dup", b"\x6a\x02\x00\x07", 0x6A, b"\x00\x07"),
    ("SUBACK", b"\x90\x05\x00\x07\x00\x01\x02", 0x90, b"\x00\x07\x00\x01\x02"),
    ("UNSUBACK", b"\xb0\x02\x00\x07", 0xB0, b"\x00\x07"),
    ("PINGRESP", b"\xd0\x00", 0xD0, b""),
]

# Lengths at every boundary of the encoding, and their bytes (MQTT 3.1 §2.1).
LENGTHS = [
    (0, b"\x00"), (1, b"\x01"), (127, b"\x7f"), (128, b"\x80\x01"), (321, b"\xc1\x02"),
    (16383, b"\xff\x7f"), (16384, b"\x80\x80\x01"), (2097151, b"\xff\xff\x7f"),
    (2097152, b"\x80\x80\x80\x01"), (268435455, b"\xff\xff\xff\x7f"),
]  # fmt: skip
