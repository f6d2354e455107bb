"""Generated packets, written and read by a client, against the tests' own packet writer.

The table of cases is `dialogues/codec.txt`.  MQTT 3.1 §2 and §3.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from host_tests.client import wire
from host_tests.client.dialogue import Dialogue

letters = st.characters(codec="utf-8", exclude_characters="+#\0")
topics = st.text(letters, min_size=1, max_size=40).map(str.encode)
payloads = st.one_of(st.binary(max_size=300), st.integers(0, 16_000).map(lambda n: b"p" * n))
ids = st.integers(1, 65535)


@given(topics, payloads, st.integers(0, 2), ids, st.booleans(), st.booleans())
def test_any_publish_is_written_as_specified(topic, payload, qos, packet_id, dup, retain):
    """31-2.5-UTF8, 31-3.3-IDQOS, 31-2.1-ENDIAN, 31-2.1-LEN."""
    dup = dup and qos > 0
    expected = wire.publish(topic, payload, qos, packet_id, dup, retain)
    d = Dialogue(first_id=packet_id, buffer_size=max(32, len(expected)), keepalive=0)
    d.client.publish(topic, payload, retain, qos)
    if dup:
        d.stream.take()
        d.lose()
        d.connect(False)
    d.c2b(expected)


PACKETS = st.one_of(
    st.tuples(topics, payloads, st.integers(0, 2), ids).map(lambda fields: wire.publish(*fields)),
    ids.map(wire.puback),
    ids.map(wire.pubrel),
    st.sampled_from([wire.pingresp(), b"\x90\x05\x00\x07\x00\x01\x02"]),
)


@settings(max_examples=60)
@given(st.lists(PACKETS, max_size=8), st.sampled_from([40, 300, 16383]), st.data())
def test_any_packets_in_any_pieces_are_the_same_packets(packets, size, data):
    """31-2.1-LEN.  In a buffer too small for some of them, which are passed over."""
    seen = []
    for is_whole in (True, False):
        stream = b"".join(packets)
        d = Dialogue(buffer_size=size, keepalive=0)
        d.client.on_oversize = lambda *lengths, d=d: d.messages.append(lengths)
        pieces = [stream] if stream else []
        while not is_whole and stream:
            n = data.draw(st.integers(1, len(stream)))
            pieces.append(stream[:n])
            stream = stream[n:]
        for piece in pieces if is_whole else pieces[1:]:
            d.b2c(piece)
        seen.append((d.messages, d.take_packets()))
    assert seen[0] == seen[1]
    assert len(seen[0][0]) >= len(
        {packet for packet in packets if packet[0] >> 4 == 3 and not packet[0] & 4}
    )
