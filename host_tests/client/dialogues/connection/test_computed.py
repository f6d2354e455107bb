"""What the scripts of connections cannot say: each flag of CONNECT, types, texts of errors."""

import errno

import umqtt31
from host_tests.client.dialogue import Dialogue, code_of, error_of, refuses
from host_tests.client.wire import connack, connect, puback
from host_tests.standin.stream import ScriptedStream
from umqtt31 import CLOSED, FULL, NETWORK, REFUSED_CREDENTIALS, REFUSED_NOT_AUTHORIZED, TIMEOUT


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
        refuses(TypeError, "stream", d.client.connect, True, wrong)
        assert not dropped and d.client.is_connected
        d.b2c(puback(packet_id))
        assert d.client.inflight == 0


NAMES_OF_NUMBERS = ("Errno", "EIO", "EPERM", "EINTR", "ENOENT", "ESRCH")


# 31-2.2-RC: return code 5 is not the system's error 5.
def test_refused_connection_has_a_code_and_no_number_of_the_system():
    for code in (1, 2, 3, 4, 5):
        d = Dialogue(is_connected=False)
        stream = ScriptedStream()
        stream.answer(d.connect_packet(True), connack(code))
        error = error_of(d.client.connect, stream=stream)
        assert error.code == code
        assert not error.errno
        assert not any(name in str(error) for name in NAMES_OF_NUMBERS), error
    assert (REFUSED_CREDENTIALS, REFUSED_NOT_AUTHORIZED) == (4, 5)


def test_errors_of_our_own_have_no_number_of_the_system():
    d = Dialogue(max_inflight=1, max_mqueue_len=0, keepalive=10)
    d.publish()
    full = error_of(d.publish)
    assert full.code == FULL
    d.client.ping()
    d.clock.sleep_ms(10000)
    late = error_of(d.work)
    assert late.code == TIMEOUT
    for error in (full, late):
        assert not error.errno
        assert "Errno" not in str(error) and str(error)


def test_lost_connection_has_the_number_of_the_system():
    d = Dialogue()
    d.stream.feed(OSError(errno.ECONNRESET))
    error = error_of(d.client.poll)
    assert (error.code, error.errno) == (NETWORK, errno.ECONNRESET)
    assert "lost" in str(error)  # not "cannot reach": it was reached


# A socket that is still connecting tells of a refusal when it is written to or read.
def test_refused_by_the_host_names_host_and_port_and_is_not_lost():
    for is_read in (False, True):
        d = Dialogue(is_connected=False)
        stream = d.next_stream = ScriptedStream()
        if is_read:
            stream.feed(OSError(errno.ECONNREFUSED))
        else:
            stream.write_error = OSError(errno.ECONNREFUSED)
        error = error_of(d.client.connect)
        assert (error.code, error.errno) == (NETWORK, errno.ECONNREFUSED)
        assert "broker" in str(error) and "1883" in str(error)
        assert "lost" not in str(error)


def test_unreachable_host_has_the_number_of_the_system():
    d = Dialogue(is_connected=False, port=8888)
    error = error_of(d.client.connect)
    assert (error.code, error.errno) == (NETWORK, 111)
    assert "broker" in str(error) and "8888" in str(error)
    assert "(check both)" in str(error)


def test_what_keeps_a_client_from_connecting_says_what_to_do():
    """mosquitto says 5 for a wrong password; the port of another server says nothing."""
    d = Dialogue(is_connected=False)
    stream = ScriptedStream()
    stream.answer(d.connect_packet(True), connack(5))
    assert "password" in str(error_of(d.client.connect, stream=stream))
    silent = error_of(d.client.connect, stream=ScriptedStream())
    assert silent.code == TIMEOUT
    assert "TLS" in str(silent) and "(broker port 1883)" in str(silent)


def test_poll_while_reconnect_goes_on_blames_no_broker():
    d = Dialogue()
    d.lose()
    stream = d.next_stream = ScriptedStream()
    while not stream.writes:
        assert not d.client.reconnect(100)
    error = error_of(d.client.poll)
    assert (error.code, "CONNECT of MQTT" in str(error)) == (CLOSED, False)
