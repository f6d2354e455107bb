"""CONNECT, CONNACK and DISCONNECT on the wire.  MQTT 3.1 §3.1, §3.2, §3.14."""

import umqtt31
from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.wire import connack, connect, puback
from host_tests.standin.stream import ScriptedStream
from umqtt31 import NETWORK


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
