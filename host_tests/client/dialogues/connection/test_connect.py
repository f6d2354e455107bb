"""CONNECT, CONNACK and DISCONNECT on the wire.  MQTT 3.1 §3.1, §3.2, §3.14."""

import umqtt31
from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.wire import connack, connect, puback, publish, pubrec
from host_tests.standin.store import KeepingStore
from host_tests.standin.stream import ScriptedStream
from umqtt31 import CLOSED, NETWORK, TIMEOUT, MQTTClient

# The bytes of MQTT 3.1 itself.
LEVEL_3 = (
    "test_c2b_connect_plain_carries_mqisdp_version_3",
    "test_c2b_connect_with_everything_keeps_the_payload_order",
    "test_b2c_connack_reserved_byte_is_ignored_at_level_3",
)


def test_c2b_connect_plain_carries_mqisdp_version_3():
    """31-2.2-PROTO, 31-2.1-ENDIAN, 31-2.6-UNUSED.

    C: CONNECT "MQIsdp" 3, clean session, keep alive 300, "dev"
    B: CONNACK 0
    """
    d = Dialogue(is_connected=False, keepalive=300)
    stream = ScriptedStream()
    stream.answer(b"\x10\x11\x00\x06MQIsdp\x03\x02\x01\x2c\x00\x03dev", b"\x20\x02\x00\x00")
    d.client.connect(stream=stream)
    assert stream.has_answered() and stream.take() == b"" and d.client.is_connected


def test_c2b_connect_with_everything_keeps_the_payload_order():
    """31-2.2-FLAGS, 31-3.1-ORDER, 31-3.1-WILL, 31-2.5-UTF8.

    C: CONNECT user, password, will retained QoS 1, session kept;
       "dev", will topic, will message, user, password
    B: CONNACK 0
    """
    d = Dialogue(is_connected=False, user="zoë", password="s")
    d.client.set_last_will("w/t", "gone", retain=True, qos=1)
    stream = ScriptedStream()
    stream.answer(
        b"\x10\x25\x00\x06MQIsdp\x03\xec\x00\x3c"
        b"\x00\x03dev\x00\x03w/t\x00\x04gone\x00\x04zo\xc3\xab\x00\x01s",
        connack(),
    )
    d.client.connect(False, stream=stream)
    assert stream.has_answered()


def test_c2b_connect_flags_are_those_of_the_arguments():
    """31-2.2-FLAGS: bit 0 is 0, and without a will its QoS and retain are 0.

    C: CONNECT with each combination of will, user, password, clean session
    B: CONNACK 0
    """
    for clean in (False, True):
        for user, password, high in ((None, None, 0), ("u", None, 0x80), ("u", "p", 0xC0)):
            for will in (None, (0, False), (1, False), (2, True), (0, True)):
                d = Dialogue(is_connected=False, user=user, password=password)
                flags = high | (2 if clean else 0)
                fields = []
                if will:
                    d.client.set_last_will(b"w", b"m", retain=will[1], qos=will[0])
                    flags |= 4 | will[0] << 3 | (0x20 if will[1] else 0)
                    fields = [b"w", b"m"]
                fields += [text.encode() for text in (user, password) if text]
                stream = ScriptedStream()
                stream.answer(connect(b"dev", flags, 60, *fields, level=d.level), connack())
                d.client.connect(clean, stream=stream)
                assert stream.has_answered(), flags


def test_client_id_outside_1_to_23_characters_is_refused_before_a_socket_is_opened():
    """31-3.1-CLIENTID: characters, not bytes, count."""
    for bad in (b"", "", "x" * 24, b"x" * 24):
        assert isinstance(error_of(MQTTClient, bad, "broker"), ValueError)
    for good in ("x", b"x" * 23, "ë" * 23):
        MQTTClient(good, "broker")


# 311-3.1.2-22.
def test_password_without_user_is_refused_before_anything_is_sent():
    """31-2.2-USER."""
    assert isinstance(error_of(MQTTClient, "dev", "broker", password="p"), ValueError)


def test_keepalive_outside_16_bits_is_refused():
    """31-2.2-KA: 0 to 65535."""
    for bad in (-1, 65536):
        assert isinstance(error_of(MQTTClient, "dev", "broker", keepalive=bad), ValueError)
    for good in (0, 65535):
        MQTTClient("dev", "broker", keepalive=good)


def test_b2c_connack_refused_raises_the_code_by_name():
    """31-2.2-RC: 1 to 5 have names; 6 to 255 show their number.

    C: CONNECT
    B: CONNACK 1 … 255
    """
    names = ("VERSION", "CLIENT_ID", "UNAVAILABLE", "CREDENTIALS", "NOT_AUTHORIZED")
    named = [getattr(umqtt31, "REFUSED_" + name) for name in names]
    assert named == [1, 2, 3, 4, 5]
    texts = []
    d = Dialogue(is_connected=False)
    for code in (1, 2, 3, 4, 5, 6, 77, 255):
        stream = ScriptedStream()
        stream.answer(d.connect_packet(True), connack(code))
        error = error_of(d.client.connect, stream=stream)
        assert isinstance(error, umqtt31.MQTTError) and error.code == code
        assert stream.is_closed and not d.client.is_connected
        texts.append(str(error))
        assert code <= 5 or str(code) in texts[-1]
    assert len(set(texts)) == len(texts)
    d.connect()
    assert d.client.is_connected


def test_b2c_no_connack_in_time_closes_with_time_out():
    """31-3.1-CONNACK: the time is settable.

    C: CONNECT
    B: nothing
    """
    for seconds in (1, 7):
        d = Dialogue(is_connected=False, connect_timeout=seconds)
        stream = ScriptedStream()
        assert code_of(d.client.connect, stream=stream) == TIMEOUT
        assert stream.is_closed and stream.take() == d.connect_packet(True)
        assert seconds * 1000 <= d.clock.now_ms <= seconds * 1000 + 10


def test_c2b_connect_that_cannot_be_written_times_out():
    """31-3.1-CONNACK: waiting for room in the stream has a deadline too."""
    d = Dialogue(is_connected=False, connect_timeout=2)
    stream = ScriptedStream()
    stream.is_blocked = True
    assert code_of(d.client.connect, stream=stream) == TIMEOUT
    assert stream.is_closed and d.clock.now_ms <= 2010


def test_b2c_connack_reserved_byte_is_ignored_at_level_3():
    """31-3.2-CONNACK: the first byte is reserved in MQTT 3.1; no session is claimed."""
    d = Dialogue(is_connected=False)
    stream = ScriptedStream()
    stream.answer(d.connect_packet(True), connack(0, 1))
    assert d.client.connect(stream=stream) is False
    assert d.client.is_connected


def test_b2c_connack_in_pieces_is_waited_for():
    """C: CONNECT, byte by byte; B: CONNACK, byte by byte with pauses."""
    d = Dialogue(is_connected=False)
    stream = ScriptedStream(write_most=1)
    stream.answer(d.connect_packet(True), b"\x20")
    d.stream = stream
    for byte in connack():
        stream.feed(None, bytes((byte,)), None)
    d.client.connect(stream=stream)
    assert d.client.is_connected


def test_b2c_what_comes_with_connack_makes_poll_due():
    """connect() calls no handler, and the stream says nothing of what was read with CONNACK.

    B: CONNACK 0, PUBLISH a, PUBLISH b and the start of another
    """
    packets = publish(b"t", b"a" * 20) + publish(b"t", b"b" * 20)
    for size in (40, 256):
        d = Dialogue(is_connected=False, buffer_size=size, keepalive=0)
        d.stream = ScriptedStream()
        d.stream.answer(d.connect_packet(True), connack() + packets + packets[:3])
        d.client.connect(stream=d.stream)
        assert d.messages == [] and d.client.next_due_ms() == 0
        d.work()
        assert len(d.take_messages()) == 2 and d.client.next_due_ms() == 86400000
        d.b2c(packets[3:])
        assert len(d.messages) == 2


def test_b2c_close_before_connack_is_told_apart_from_a_time_out():
    """C: CONNECT; B: closes, or the network resets the connection."""
    for event, code in ((b"", CLOSED), (OSError(104), NETWORK)):
        d = Dialogue(is_connected=False)
        stream = ScriptedStream()
        stream.feed(event)
        assert code_of(d.client.connect, stream=stream) == code
        assert stream.is_closed
        d.connect()


def test_c2b_connect_of_which_the_stream_takes_a_part_and_breaks_says_why():
    class Breaking(ScriptedStream):
        def write(self, buf, off, n):
            if len(self.writes) > 1:  # a part, nothing
                raise OSError(104)
            return super().write(buf, off, n)

    d = Dialogue(is_connected=False)
    stream = Breaking(write_most=5)
    assert code_of(d.client.connect, True, stream) == NETWORK
    assert stream.is_closed


def test_c2b_disconnect_on_a_blocked_stream_gives_up_in_time():
    """Every wait has a deadline: a stream that takes nothing is closed."""
    d = Dialogue(connect_timeout=2)
    d.stream.is_blocked = True
    d.publish()
    d.client.disconnect()
    assert d.stream.is_closed and d.clock.now_ms <= 4100


def test_c2b_connect_while_connected_replaces_the_connection():
    """C: CONNECT on a new stream; the old one is closed, and is not read again."""
    d = Dialogue()
    old = d.stream
    old.feed(publish(b"t", b"old"))
    d.connect()
    assert old.is_closed and d.client.is_connected
    d.b2c(publish(b"t", b"new"))
    assert d.messages == [(b"t", b"new", 0, False, False)]


def test_c2b_connect_larger_than_the_buffer_is_refused_before_anything_is_opened():
    for length in (20, 65535, 65536, 70000):
        d = Dialogue(is_connected=False, buffer_size=32, user="u", password="p" * length)
        assert code_of(d.client.connect) == umqtt31.TOO_LARGE
        assert d.opened == 0


def test_connect_with_what_is_no_stream_changes_nothing():
    """A clean session would give up what is in flight."""
    for wrong in (16, "uart", [1]):
        d = Dialogue(is_queueing=True)
        dropped = d.watch_drops()
        packet_id = d.publish(b"x", 1)
        d.take_packets()
        error = error_of(d.client.connect, True, wrong)
        assert isinstance(error, TypeError) and "stream" in str(error)
        assert not dropped and d.client.is_connected
        d.b2c(puback(packet_id))
        assert d.client.inflight == 0


def test_b2c_clean_connect_without_connack_ends_the_session_all_the_same():
    """MQTT-4.3.3-12, 31-3.1-CLEAN: when CONNECT leaves, in the journal, too; it may have arrived.

    B: PUBLISH 5; C: PUBREC 5; C: CONNECT clean; lost, or the power goes; C: CONNECT
    B: PUBLISH 5, another one
    """
    for is_reset in (False, True):
        store = KeepingStore()
        d = Dialogue(store=store)
        d.publish(b"out", 2)
        d.b2c(pubrec(1), publish(b"t", b"old", 2, 5))
        d.lose()
        stream = ScriptedStream()
        stream.feed(None, OSError(104))
        assert code_of(d.client.connect, True, stream) == NETWORK
        assert stream.take() == d.connect_packet(True)
        if is_reset:
            d = Dialogue(store=store, is_connected=False)
        else:
            d.take_messages()
        d.connect(False, False)
        d.b2c(publish(b"t", b"new", 2, 5))
        d.c2b(pubrec(5))
        assert [message[1] for message in d.messages] == [b"new"]


def test_c2b_clean_reconnect_without_connack_publishes_as_new():
    """31-3.1-CLEAN, 31-4.1-Q2: PUBREC of the old session says nothing to the new one.

    C: PUBLISH 1; B: PUBREC 1; C: PUBREL 1; C: CONNECT clean; lost, or the power goes; C: CONNECT
    C: PUBLISH 1
    """
    for is_reset in (False, True):
        store = KeepingStore()
        d = Dialogue(clean=True, store=store)
        d.publish(b"out", 2)
        d.b2c(pubrec(1))
        d.lose()
        stream = d.next_stream = ScriptedStream()
        stream.feed(None, None, OSError(104))
        while not stream.is_closed:
            assert d.client.reconnect(1000) is False
        assert stream.take() == d.connect_packet(True)
        if is_reset:
            d = Dialogue(store=store, is_connected=False)
        d.connect(False, False)
        d.c2b(publish(b"t", b"out", 2, 1))


def test_b2c_error_of_tls_before_connack_is_one_of_the_network():
    """Mbed TLS's numbers are below 0, those of Windows above 255."""
    for number in (-0x7280, -2, 10054):
        d = Dialogue(is_connected=False)
        stream = ScriptedStream()
        stream.feed(None, OSError(number, "of the port"))
        assert code_of(d.client.connect, True, stream) == NETWORK and stream.is_closed
