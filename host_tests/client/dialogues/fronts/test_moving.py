"""Programs for umqtt.simple, behaviour by behaviour: docs/guides/moving.md lists them."""

from errno import EINPROGRESS, ETIMEDOUT

from host_tests.client import wire
from host_tests.client.dialogue import error_of, modules_with, refuses, turn, with_ids_from_1
from host_tests.client.wire import puback, publish, suback, subscribe, unsuback, unsubscribe
from host_tests.standin.clock import Clock
from host_tests.standin.stream import ScriptedStream
from umqtt31 import CLOSED, TOO_LARGE
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


def test_connect_writes_again_to_a_socket_that_was_still_connecting():
    """As those of boards say it."""

    class Connecting(ScriptedStream):
        has_said = False

        def write(self, buf, off, n):
            if not self.has_said:
                self.has_said = True
                raise OSError(EINPROGRESS, "")
            return super().write(buf, off, n)

    stream = Connecting()
    stream.answer(wire.connect(b"dev", 2, 0, level=4), wire.connack())
    p = Program()
    p.client.connect(stream=stream)
    assert p.client.is_connected


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


def test_no_tls_may_be_said_in_any_way():
    for ssl in (None, False, 0):
        assert MQTTClient(b"dev", "broker", ssl=ssl).port == 1883


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
        refuses(TypeError, name, call)
    assert p.stream.take() == b""


def test_exception_raised_by_a_program_takes_what_it_gives():
    """Own copies of umqtt.robust give up with MQTTException(e)."""
    lost = OSError(104)
    for given in (lost, "too many attempts", 5):
        error = MQTTException(given)
        assert error.args[0] == given and isinstance(error, OSError)
    assert MQTTException(5).code == 5
    assert MQTTException().args


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
