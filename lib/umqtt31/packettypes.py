"""The packet types by name, as the first byte of a packet has them.

For host tools and tests, who find them in `packet`.  Not installed on a board, where
each name would take 25 bytes; the modules there have their own constants, and a test
compares them with these.  MQTT 3.1 §2.1.
"""

CONNECT = 0x10
CONNACK = 0x20
PUBLISH = 0x30
PUBACK = 0x40
PUBREC = 0x50
PUBREL = 0x62  # 31-3.6-PUBREL: carries the QoS bits 01
PUBCOMP = 0x70
SUBSCRIBE = 0x82
SUBACK = 0x90
UNSUBSCRIBE = 0xA2
UNSUBACK = 0xB0
PINGREQ = 0xC0
PINGRESP = 0xD0
DISCONNECT = 0xE0

DUP = 0x08
