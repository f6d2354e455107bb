"""What the levels of the protocol differ in, as data; the rest of the core asks here.

Level 3 is MQTT 3.1, 4 is 3.1.1, 5 is 5.0.  A level is (start of CONNECT's variable header, most
characters of a client id, seconds until unanswered messages are sent again if the program does
not say, and at most: MQTT-4.4.0-1, at level 5 only a new connection repeats).
"""

LEVELS = {
    3: (b"\x00\x06MQIsdp\x03", 23, 30, 3600),  # 31-2.2-PROTO, 31-3.1-CLIENTID
    4: (b"\x00\x04MQTT\x04", 65535, 0, 3600),
    5: (b"\x00\x04MQTT\x05", 65535, 0, 0),
}
