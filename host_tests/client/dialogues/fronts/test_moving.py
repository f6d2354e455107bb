"""Programs for umqtt.simple, behaviour by behaviour: docs/guides/moving.md lists them."""

from errno import ETIMEDOUT

from host_tests.client import wire
from host_tests.client.dialogue import error_of, modules_with, turn, with_ids_from_1
from host_tests.client.wire import puback, publish, suback, subscribe, unsuback, unsubscribe
from host_tests.standin.clock import Clock
from host_tests.standin.stream import ScriptedStream
from umqtt31 import CLOSED, REFUSED_FILTER, TIMEOUT, TOO_LARGE
from umqtt31.simple import MQTTClient, MQTTException

LEVELS = (4,)


class Program:
    """A client with a turned clock; `seen` is what its callback got."""

    def __init__(self, *args, **options):
        clock = Clock()
        turn(clock)
        self.clock = clock
        self.client = with_ids_from_1(MQTTClient, *(args or (b"dev", "broker")), **options)
        self.client.set_callback(lambda topic, msg: self.seen.append((topic, msg)))
        self.seen = []
        self.stream = ScriptedStream()

    def connect(self, request=None, reply=None, clean=True):
        """connect() on a new stream, where the broker answers `request` -> what it returned."""
        self.stream = ScriptedStream()
        request = request or wire.connect(b"dev", 2 if clean else 0, 0, level=4)
        self.stream.answer(request, reply or wire.connack())
        found = self.client.connect(clean, stream=self.stream)
        assert self.stream.has_answered()
        return found


def connected(*args, **options):
    program = Program(*args, **options)
    program.connect()
    return program


def test_c2b_message_of_any_size_arrives_whole():
    """C: PUBLISH of 3,000 bytes at QoS 0, 1, 2; then buffers are as small as before."""
    big = bytes(range(250)) * 12
    p = connected()
    p.client.publish(b"t", big)
    assert p.stream.take() == publish(b"t", big)
    p.stream.answer(publish(b"t", big, 1, 1), puback(1))
    p.client.publish(b"t", big, False, 1)
    p.stream.answer(publish(b"t", big, 2, 2), wire.pubrec(2))
    p.stream.answer(wire.pubrel(2), wire.pubcomp(2))
    p.client.publish("t", big, qos=2)
    assert p.stream.has_answered()
    p.client.publish(b"t", b"x")
    assert p.stream.take() == publish(b"t", b"x")


def test_c2b_message_of_any_size_through_a_slow_socket_arrives_whole():
    """A stream that takes 7 bytes at a time; publish() returns when all is written."""
    p = connected(buffer_size=64)
    p.stream.write_most = 7
    big = b"0123456789" * 100
    p.client.publish(b"t", big)
    assert p.stream.take() == publish(b"t", big)


def test_c2b_publish_takes_as_long_as_a_slow_socket_that_goes_on():
    """A byte every four seconds: longer than connect_timeout, which counts without a byte."""

    class Slow(ScriptedStream):
        taken_at = 0

        def write(self, buf, off, n):
            if not p.client.is_connected:
                return super().write(buf, off, n)
            if p.clock.now_ms - self.taken_at < 4000:
                return None
            self.taken_at = p.clock.now_ms
            return super().write(buf, off, 1)

    p = Program()
    slow = Slow()
    slow.feed(wire.connack())
    p.client.connect(stream=slow)
    slow.take()
    p.client.publish(b"t", b"0123456789")
    assert slow.take() == publish(b"t", b"0123456789")


def test_c2b_burst_into_a_slow_socket_waits_for_room():
    """100 PUBLISH at QoS 0: none is refused, none is lost."""
    p = connected()
    p.stream.write_most = 5
    for k in range(100):
        p.client.publish(b"t", b"%d" % k)
    assert p.stream.take() == b"".join([publish(b"t", b"%d" % k) for k in range(100)])


def test_c2b_socket_that_takes_nothing_ends_in_a_time_out():
    """After connect_timeout without a byte, not after the whole time of a slow one."""
    p = connected(connect_timeout=2)
    p.stream.is_blocked = True
    assert error_of(p.client.publish, b"t", b"x").code == TIMEOUT
    assert p.stream.is_closed


def test_b2c_message_of_any_size_comes_whole():
    """B: PUBLISH of 40 bytes, 70,000 bytes at QoS 1, 40 bytes."""
    big = b"0123456789" * 7000
    for read_most in (0, 1000):
        p = connected(buffer_size=64)
        p.stream.read_most = read_most
        p.stream.feed(
            publish(b"t", b"x" * 40), publish(b"a/b", big, 1, 5), publish(b"t", b"y" * 40)
        )
        while len(p.seen) < 3:
            p.client.check_msg()
        assert p.seen == [(b"t", b"x" * 40), (b"a/b", big), (b"t", b"y" * 40)]
        assert p.stream.take() == puback(5)
        assert p.client.stats.oversize == 0


def test_c2b_message_larger_than_all_memory_goes_out_from_where_it_is():
    """C: PUBLISH of 900 bytes, where there is no memory for a copy."""
    p = connected()
    large = b"large" * 180
    modules = refuse_buffers(64)
    try:
        p.client.publish(b"t", large)
        p.stream.answer(publish(b"t", large, 1, 1), puback(1))
        assert p.stream.take() == publish(b"t", large)
        p.client.publish(b"t", large, qos=1)
    finally:
        for module in modules:
            del module.bytearray
    p.client.publish(b"t", b"last")
    assert p.stream.take() == publish(b"t", b"last")


def refuse_buffers(least):
    """No memory for a buffer of so many bytes -> the modules, of which `bytearray` is to be
    deleted again."""

    def new_buffer(content):
        if isinstance(content, int) and content >= least:
            raise MemoryError
        return bytearray(content)

    modules = modules_with("__name__")
    for module in modules:
        module.bytearray = new_buffer
    return modules


def test_b2c_message_larger_than_all_memory_is_acknowledged_and_raised():
    """B: PUBLISH of 200,000 bytes where there is no memory for it, PUBLISH small."""
    p = connected()
    modules = refuse_buffers(1000)
    p.stream.feed(publish(b"t", bytes(200000), 1, 5), publish(b"t", b"x"))
    error = None
    try:
        while error is None:
            try:
                p.client.check_msg()
            except OSError as found:
                error = found
    finally:
        for module in modules:
            del module.bytearray
    assert error.code == TOO_LARGE and p.stream.take() == puback(5)
    p.client.check_msg()
    assert p.seen == [(b"t", b"x")]


def test_client_id_of_any_length_and_none():
    long = "weather-station-on-the-roof-of-the-school"
    for client_id in (b"", b"\xe6\x61\0", b"x" * 24, b"x" * 300, long):
        p = Program(client_id, "broker")
        name = client_id.encode() if isinstance(client_id, str) else client_id
        p.connect(wire.connect(name, 2, 0, level=4))


def test_will_without_keep_alive_and_of_any_bytes():
    """CONNECT with keep alive 0 and a will that is not ASCII, also a long one."""
    for will in (b"", b"\x00\xff\x80", "gr\u00fc\u00df".encode(), b"x" * 2000):
        p = Program()
        p.client.set_last_will(b"will", will, True, 1)
        p.connect(wire.connect(b"dev", 0x2E, 0, b"will", will, level=4))


def test_password_empty_or_without_user():
    """An empty password is sent; without a user none is, as umqtt.simple does."""
    p = Program(b"dev", "broker", 0, "me", "")
    p.connect(wire.connect(b"dev", 0xC2, 0, b"me", b"", level=4))
    for user in (None, ""):
        p = Program(b"dev", "broker", 0, user, "")
        p.connect()


def test_session_present_is_returned():
    p = Program()
    assert repr(p.connect(clean=False)) == "0"  # what programs print
    reply = wire.connack(0, 1)
    assert repr(p.connect(clean=False, reply=reply)) == "1"


def test_refusal_raises_with_the_brokers_code():
    """CONNACK 5: umqtt.simple's MQTTException has the code in args[0]."""
    p = Program()
    error = error_of(p.connect, None, wire.connack(5))
    assert isinstance(error, MQTTException) and error.args[0] == 5
    assert str(error).startswith("broker says") and "broker port 1883" in str(error)  # no EIO


def test_refused_filter_raises():
    """SUBACK 0x80."""
    p = connected()
    p.stream.answer(subscribe(1, (b"secret", 0)), suback(1, 128))
    error = error_of(p.client.subscribe, b"secret")
    assert isinstance(error, MQTTException) and error.args[0] == 128
    assert error.code != REFUSED_FILTER and "secret" in str(error)


def test_any_number_of_subscriptions():
    """100 filters, one of them longer than the buffer; connect() does not send them again."""
    p = connected(buffer_size=64)
    for k in range(1, 101):
        topic = b"t/%d" % k if k != 50 else b"t/" + b"x" * 500
        p.stream.answer(subscribe(k, (topic, 1)), suback(k, 1))
        assert p.client.subscribe(topic, 1) is None
    p.stream.answer(unsubscribe(101, b"t/7"), unsuback(101))
    p.client.unsubscribe(b"t/7")
    assert p.stream.has_answered()
    p.connect()
    assert p.client.check_msg() is None and p.stream.take() == b""


def test_check_msg_handles_one_message():
    """B: three PUBLISH at once.  As umqtt.simple it returns the first byte of what came."""
    p = connected()
    assert p.client.check_msg() is None
    p.stream.feed(publish(b"t", b"1") + publish(b"t", b"2", 1, 7) + wire.pingresp())
    assert p.client.check_msg() == 0x30 and p.seen == [(b"t", b"1")]
    assert p.client.check_msg() == 0x32 and p.seen == [(b"t", b"1"), (b"t", b"2")]
    assert p.client.check_msg() is None
    assert p.stream.take() == puback(7)


def test_wait_msg_returns_for_each_packet():
    p = connected()
    p.stream.feed(*[None] * 30000)
    p.stream.feed(publish(b"t", b"1"), wire.pingresp())
    assert p.client.wait_msg() == 0x30
    assert p.client.wait_msg() is None


def test_callback_may_publish_at_each_qos():
    """B: PUBLISH 5; in its callback C: PUBLISH 0, PUBLISH 1; B: PUBACK 1; C: PUBACK 5."""
    p = connected()

    def on_message(topic, msg):
        p.client.publish(b"echo", msg)
        p.client.publish(b"echo", msg + b"x" * 500, False, 1)
        p.seen.append(msg)

    p.client.set_callback(on_message)
    p.stream.answer(publish(b"echo", b"1") + publish(b"echo", b"1" + b"x" * 500, 1, 1), puback(1))
    p.stream.feed(publish(b"t", b"1", 1, 5))
    p.client.wait_msg()
    assert p.seen == [b"1"] and p.stream.has_answered()
    assert p.stream.take() == puback(5)


def test_callback_may_publish_while_publish_waits():
    """C: PUBLISH 1; B: PUBLISH; in its callback C: PUBLISH 2; B: PUBACK 1, PUBACK 2."""
    p = connected()
    p.client.set_callback(lambda topic, msg: p.client.publish(b"in", msg, False, 1))
    p.stream.answer(publish(b"out", b"a", 1, 1), publish(b"t", b"b") + puback(1))
    p.stream.answer(publish(b"in", b"b", 1, 2), puback(2))
    p.client.publish(b"out", b"a", False, 1)
    assert p.stream.has_answered()
    assert p.client.check_msg() is None


def test_callback_may_subscribe_and_check():
    """B: PUBLISH 1; in its callback C: SUBSCRIBE, and the next message is taken there."""
    p = connected()

    def on_message(topic, msg):
        p.seen.append(msg)
        if msg == b"1":
            p.client.subscribe(b"more")
            p.client.check_msg()
            p.seen.append(b"end of 1")

    p.client.set_callback(on_message)
    p.stream.answer(subscribe(1, (b"more", 0)), suback(1, 0) + publish(b"t", b"2", 1, 8))
    p.stream.feed(publish(b"t", b"1", 1, 7))
    p.client.check_msg()
    assert p.seen == [b"1", b"2", b"end of 1"]
    assert p.stream.take() == puback(8) + puback(7)


def test_callback_may_publish_at_another_qos_while_publish_waits_for_room():
    """Three calls, one inside the other; each message goes out as its call said."""
    p = connected()

    def callback(topic, msg):
        p.seen.append(msg)
        if msg == b"a":
            p.client.publish(b"t", b"2", False, 2)
        else:
            p.client.publish(b"t", b"3", False, 1)

    p.client.set_callback(callback)
    inside = publish(b"t", b"a") + publish(b"t", b"b")
    p.stream.answer(publish(b"t", b"1", 1, 1), inside + puback(1))
    p.stream.answer(publish(b"t", b"3", 1, 2), puback(2))
    p.stream.answer(publish(b"t", b"2", 2, 3), wire.pubrec(3))
    p.stream.answer(wire.pubrel(3), wire.pubcomp(3))
    p.client.publish(b"t", b"1", False, 1)
    assert p.seen == [b"a", b"b"] and p.stream.has_answered()


def test_answers_that_a_slow_socket_has_not_taken_survive_a_large_message():
    """Buffers are made larger and smaller again while a PUBACK is half written."""
    big = b"x" * 300
    for is_inside in (False, True):
        p = connected()
        p.stream.write_most = 1
        if is_inside:
            # The callback publishes it while another message is under way.
            p.client.set_callback(lambda _, msg: msg == b"a" and p.client.publish(b"t", big))  # noqa: B023
            p.stream.answer(
                publish(b"t", b"1", 1, 1),
                publish(b"t", b"a") + publish(b"t", b"b", 1, 7) + puback(1),
            )
            p.client.publish(b"t", b"1", False, 1)
            expected = publish(b"t", big) + puback(7)
        else:
            p.stream.answer(publish(b"t", big, 1, 1), publish(b"t", b"b", 1, 7) + puback(1))
            p.client.publish(b"t", big, False, 1)
            expected = puback(7)
        for _ in range(10):
            p.client.check_msg()
        assert p.stream.take() == expected


def test_subscribe_gets_its_own_answer_when_the_callback_subscribes_or_connects():
    p = connected()
    p.client.set_callback(lambda _, msg: p.client.subscribe(b"t", 1))
    p.stream.answer(subscribe(1, (b"no", 1)), publish(b"t", b"a") + suback(1, 0x80))
    p.stream.answer(subscribe(2, (b"t", 1)), suback(2, 1))
    assert error_of(p.client.subscribe, b"no", 1).args[0] == 128
    assert p.stream.has_answered()

    def connect_anew(topic, msg):
        p.connect()
        p.stream.feed(suback(4, 1))  # the filter is sent again by itself

    p.client.set_callback(connect_anew)
    p.stream.answer(subscribe(3, (b"t", 1)), publish(b"t", b"a"))
    assert error_of(p.client.subscribe, b"t", 1).code == CLOSED


def test_subscribe_gets_its_own_answer_when_the_callbacks_subscribe_ends_in_an_error():
    """C: SUBSCRIBE 1; its callback: SUBSCRIBE 2, while which another callback raises."""
    p = connected()

    def on_message(topic, msg):
        if msg == b"b":
            raise KeyError(msg)
        assert isinstance(error_of(p.client.subscribe, b"t", 1), KeyError)

    p.client.set_callback(on_message)
    p.stream.answer(subscribe(1, (b"no", 1)), publish(b"t", b"a") + suback(1, 0x80))
    p.stream.answer(subscribe(2, (b"t", 1)), publish(b"t", b"b") + suback(2, 1))
    assert error_of(p.client.subscribe, b"no", 1).args[0] == 128
    p.client.set_callback(None)
    p.stream.answer(subscribe(3, (b"t", 0)), suback(3, 0))
    p.client.subscribe(b"t")
    assert p.stream.has_answered()


def test_callback_that_raises_leaves_its_message_unacknowledged():
    p = connected()

    def on_message(topic, msg):
        raise KeyError(msg)

    p.client.set_callback(on_message)
    p.stream.feed(publish(b"t", b"1", 1, 7))
    assert isinstance(error_of(p.client.check_msg), KeyError)
    assert p.client.check_msg() is None and p.stream.take() == b""


def test_callback_that_connects_anew_acknowledges_nothing_there():
    """B: PUBLISH 7; the callback connects: 7 means nothing on the new connection."""
    p = connected()
    p.client.set_callback(lambda topic, msg: p.connect())
    p.stream.feed(publish(b"t", b"1", 1, 7))
    assert p.client.check_msg() == 0x32
    assert p.client.check_msg() is None and p.stream.take() == b""


def test_publish_when_the_callback_connects_anew_then_it_raises():
    """C: PUBLISH 1; B: PUBLISH; its callback connects: nobody acknowledged 1."""
    p = connected()
    p.client.set_callback(lambda topic, msg: p.connect())
    p.stream.answer(publish(b"out", b"a", 1, 1), publish(b"t", b"b"))
    assert error_of(p.client.publish, b"out", b"a", False, 1).code == CLOSED
    assert p.client.check_msg() is None and p.stream.take() == b""


def test_publish_that_waits_while_a_callback_disconnects_raises():
    """C: PUBLISH 1; B: two PUBLISH, PUBACK 1.  The first one's callback publishes, too, and
    waits for 1; the second one's takes the PUBACK and disconnects."""
    p = connected()
    codes = []

    def on_message(topic, msg):
        if msg == b"1":
            codes.append(error_of(p.client.publish, b"out", b"b", False, 1).code)
        else:
            p.client.check_msg()
            p.client.disconnect()

    p.client.set_callback(on_message)
    answer = publish(b"t", b"1") + publish(b"t", b"2") + puback(1)
    p.stream.answer(publish(b"out", b"a", 1, 1), answer)
    codes.append(error_of(p.client.publish, b"out", b"a", False, 1).code)
    assert codes == [CLOSED, CLOSED]
    assert p.stream.take() == wire.disconnect()


def test_callback_may_disconnect():
    p = connected()
    p.client.set_callback(lambda topic, msg: p.client.disconnect())
    p.stream.feed(publish(b"t", b"1", 1, 7))
    assert p.client.check_msg() == 0x32
    assert p.stream.is_closed and p.stream.take() == wire.disconnect()


def test_message_whose_publish_raised_is_not_sent_again_by_itself():
    """The program publishes it again, as with umqtt.simple; else it would come twice."""
    p = connected(connect_timeout=2)
    assert error_of(p.client.publish, b"t", b"x" * 400, False, 1).code == TIMEOUT
    p.connect(clean=False, reply=wire.connack(0, 1))
    assert p.client.check_msg() is None and p.stream.take() == b""
    p.stream.answer(publish(b"t", b"x", 1, 2), puback(2))
    p.client.publish(b"t", b"x", False, 1)
    assert p.stream.has_answered()


def test_sock_is_the_stream_of_the_connection():
    """None before the first one; the same until the next one, and always to be closed."""
    p = Program()
    assert p.client.sock is None
    p.connect()
    sock = p.client.sock
    p.stream.feed(publish(b"t", b"x"))
    assert sock.readinto(bytearray(2)) == 2
    p.client.disconnect()
    assert p.client.sock is sock
    p.connect()
    assert p.client.sock is not sock
    sock.close()
    assert not p.stream.is_closed
    p.client.sock.close()
    p.client.sock.close()
    assert p.stream.is_closed and p.stream.take() == b""
    assert error_of(p.client.check_msg).args[0] == -1
    p.connect()
    p.stream.feed(b"")
    error_of(p.client.check_msg)
    p.client.sock.close()  # asked for when it is lost


def test_sock_that_the_program_forgets_is_there_again_with_the_next_connection():
    """client.sock.close(); client.sock = None; client.connect()"""
    p = connected()
    p.client.sock.close()
    p.client.sock = None
    p.connect()
    assert p.client.sock is not None


def assert_waits_for(p, payload):
    """wait_msg() takes what comes behind many looks for it."""
    p.stream.feed(*[None] * 5000)
    p.stream.feed(publish(b"t", payload))
    assert p.client.wait_msg() == 0x30


def test_wait_msg_of_a_sock_that_does_not_block_returns_at_once():
    """As in umqtt.robust, of which programs have copies; each call blocks again."""

    class Copy(MQTTClient):
        def check_msg(self):
            self.sock.setblocking(False)
            return super().wait_msg()

    p = Program()
    p.client = with_ids_from_1(Copy, b"dev", "broker")
    p.client.set_callback(lambda topic, msg: p.seen.append(msg))
    p.connect()
    before = p.clock.now_ms
    assert p.client.check_msg() is None and p.clock.now_ms == before
    p.stream.feed(publish(b"t", b"1"))
    assert p.client.check_msg() == 0x30 and p.seen == [b"1"]
    assert_waits_for(p, b"2")
    assert p.clock.now_ms - before > 4000
    p.client.sock.setblocking(False)
    p.client.sock.setblocking(True)
    assert_waits_for(p, b"3")


def test_wait_msg_of_a_sock_with_a_time_out_raises_it_and_stays_connected():
    """ETIMEDOUT, again and again, until something came; check_msg() never waits."""
    p = connected()
    p.client.sock.settimeout(1.5)
    for _ in range(2):
        before = p.clock.now_ms
        error = error_of(p.client.wait_msg)
        assert error.args[0] == ETIMEDOUT and 1500 <= p.clock.now_ms - before < 1510
        assert p.client.is_connected and p.client.check_msg() is None
        assert p.clock.now_ms - before < 1510
    p.stream.feed(publish(b"t", b"1"))
    assert p.client.wait_msg() == 0x30
    assert_waits_for(p, b"2")
    p.client.sock.settimeout(2)
    p.client.sock.settimeout(None)
    assert_waits_for(p, b"3")


def test_time_out_of_sock_ends_with_the_answer_to_subscribe_and_with_its_connection():
    p = connected()
    p.client.sock.settimeout(1)
    p.clock.now_ms += 1
    p.stream.answer(subscribe(1, (b"t", 0)), suback(1, 0))
    p.client.subscribe(b"t")
    assert_waits_for(p, b"1")
    p.client.sock.settimeout(1)
    p.connect()
    assert_waits_for(p, b"2")


def test_errors_have_the_numbers_that_programs_compare_with():
    """OSError(-1) where the broker closed, ETIMEDOUT for a time-out; the rest is the system's."""
    p = connected(connect_timeout=1)
    p.stream.feed(b"")
    for call in (p.client.check_msg, p.client.wait_msg, lambda: p.client.publish(b"t", b"x")):
        error = error_of(call)
        assert error.args[0] == error.errno == -1
    p.connect()
    error = error_of(p.client.publish, b"t", b"x", qos=1)
    assert error.args[0] == error.errno == ETIMEDOUT
    error = error_of(p.client.connect, timeout=1, stream=ScriptedStream())
    assert error.args[0] == error.errno == ETIMEDOUT and "broker port 1883" in str(error)


def test_no_tls_may_be_said_in_any_way():
    for ssl in (None, False, 0):
        assert MQTTClient(b"dev", "broker", ssl=ssl).port == 1883


def test_attributes_may_be_changed_between_connections():
    p = connected()
    p.client.client_id = "other"
    p.client.user = "me"
    p.client.pswd = "secret"
    p.client.keepalive = 30
    p.client.server = "elsewhere"
    p.connect(wire.connect(b"other", 0xC2, 30, b"me", b"secret", level=4))
    error = error_of(p.connect, None, wire.connack(3))
    assert "elsewhere port 1883" in str(error)


def test_port_may_be_text_and_keep_alive_none_or_false():
    """As files of settings have them, and calls that leave keep alive out."""
    assert MQTTClient(b"dev", "broker", "1884").port == 1884
    for keepalive in (None, False):
        p = connected(b"dev", "broker", keepalive=keepalive)
        p.client.keepalive = keepalive
        p.client.port = "1884"
        p.connect()
        error = error_of(p.connect, None, wire.connack(3))
        assert "broker port 1884" in str(error)


def test_wrong_types_are_named():
    p = connected()
    for call, name in (
        (lambda: p.client.publish(b"t", 5), "msg"),
        (lambda: p.client.publish(7, b"x"), "topic"),
        (lambda: p.client.publish(b"t", None, qos=1), "msg"),
        (lambda: p.client.publish(b"t", {"a": 1}), "msg"),
        (lambda: p.client.subscribe(5), "topic"),
        (lambda: p.client.set_last_will(b"t", 5), "msg"),
        (lambda: MQTTClient(5, "broker"), "client_id"),
        (lambda: MQTTClient("dev", "broker", None), "port"),
        (lambda: MQTTClient("dev", "broker", "mqtt"), "port"),
    ):
        error = error_of(call)
        assert isinstance(error, TypeError) and name in str(error)
    assert p.stream.take() == b""


def test_exception_raised_by_a_program_takes_what_it_gives():
    """Own copies of umqtt.robust give up with MQTTException(e)."""
    lost = OSError(104)
    for given in (lost, "too many attempts", 5):
        error = MQTTException(given)
        assert error.args[0] == given and isinstance(error, OSError)
    assert MQTTException(5).code == 5
    assert MQTTException().args


def test_will_may_be_given_by_its_attributes():
    """C: CONNECT with a will of lw_topic, lw_msg, lw_qos, lw_retain; without, when taken back."""
    p = Program()
    client = p.client
    assert (client.lw_topic, client.lw_msg, client.lw_qos, client.lw_retain) == (None, None, 0, 0)
    client.lw_topic = "w"
    client.lw_msg = b"gone"
    client.lw_qos = 1
    client.lw_retain = True
    p.connect(wire.connect(b"dev", 2 | 4 | 8 | 32, 0, b"w", b"gone", level=4))
    client.set_last_will(b"w2", "off", qos=2)
    assert (client.lw_topic, client.lw_msg, client.lw_qos, client.lw_retain) == (
        b"w2",
        "off",
        2,
        0,
    )
    p.connect(wire.connect(b"dev", 2 | 4 | 16, 0, b"w2", b"off", level=4))
    client.lw_topic = None
    p.connect()


def test_subclass_may_have_names_of_its_own():
    """What umqtt.simple has no name for is the program's: poll(), flush(), _publish() …"""

    class Node(MQTTClient):
        def poll(self):
            return self.check_msg()

        def flush(self):
            raise RuntimeError

        def _publish(self, key, value):
            self.publish("s/" + key, str(value), qos=1)

        is_connected = next_due_ms = stats = inflight = queued = flush

    p = Program()
    node = p.client = with_ids_from_1(Node, b"dev", "broker")
    node.set_callback(lambda topic, msg: p.seen.append((topic, msg)))
    p.connect()
    p.stream.answer(subscribe(1, (b"n/#", 0)), suback(1, 0))
    node.subscribe(b"n/#")
    p.stream.answer(publish(b"s/t", b"21", 1, 2), puback(2))
    node._publish("t", 21)
    p.stream.feed(publish(b"n/1", b"x"))
    node.poll()
    p.stream.answer(unsubscribe(3, b"n/#"), unsuback(3))
    node.unsubscribe(b"n/#")
    assert p.seen == [(b"n/1", b"x")] and p.stream.has_answered()
    node.disconnect()


def test_c2b_publish_while_another_thread_waits_is_written_once():
    """In the middle of each write() the other thread's check_msg() has its turn."""

    class Shared(ScriptedStream):
        def write(self, buf, off, n):
            n = super().write(buf, off, n)
            if client.is_connected:
                client.check_msg()
            return n

    client = Program().client
    stream = Shared()
    stream.answer(wire.connect(b"dev", 2, 0, level=4), wire.connack())
    client.connect(stream=stream)
    stream.write_most = 7
    for k in range(3):
        client.publish(b"topic", b"message %d" % k)
    assert stream.take() == b"".join([publish(b"topic", b"message %d" % k) for k in range(3)])


def test_c2b_qos0_publish_interrupted_while_it_is_written_ends_the_connection():
    """What the stream took before the interrupt nobody knows; nothing half written goes on."""

    class Interrupted(ScriptedStream):
        is_interrupted = False

        def write(self, buf, off, n):
            if self.is_interrupted:
                raise KeyboardInterrupt
            return super().write(buf, off, n)

    p = Program()
    p.stream = stream = Interrupted()
    stream.answer(wire.connect(b"dev", 2, 0, level=4), wire.connack())
    p.client.connect(stream=stream)
    stream.is_interrupted = True
    try:
        p.client.publish(b"topic", b"1")
    except KeyboardInterrupt:
        assert stream.take() == b"" and stream.is_closed
    else:
        raise AssertionError("not interrupted")
    assert error_of(p.client.publish, b"topic", b"2").code == CLOSED
    p.connect()
    p.client.publish(b"topic", b"3")
    assert p.stream.take() == publish(b"topic", b"3")
