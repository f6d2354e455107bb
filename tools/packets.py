"""Where an MQTT packet ends, and what a PUBLISH holds: read apart from the device library."""


def size_of(data: bytes | bytearray) -> int:
    """The whole size of the packet that begins `data`; 0 while its length is not all there.

    Raises ValueError for a length of more than four bytes (MQTT 3.1 section 2.1).
    """
    size = 0
    for place, byte in enumerate(data[1:5]):
        size |= (byte & 127) << 7 * place
        if byte < 128:
            return 2 + place + size
    if len(data) > 4:
        raise ValueError("a length of more than four bytes")
    return 0


def read_publish(packet: bytes) -> tuple[bytes, bytes]:
    """Topic and payload of a whole PUBLISH of level 3 or 4 (MQTT 3.1 section 3.3).

    Raises IndexError where it ends too early, ValueError where its size is another.
    """
    if size_of(packet) != len(packet):
        raise ValueError("not one whole packet")
    at = 2
    while packet[at - 1] > 127:
        at += 1
    end = at + 2 + (packet[at] << 8 | packet[at + 1])
    topic = packet[at + 2 : end]
    if packet[0] & 6:  # at QoS 1 and 2 a packet id stands before the payload
        end += 2
    return topic, packet[end:]
