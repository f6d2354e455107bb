"""Topic aliases: topics that go out as numbers.  MQTT 5 §3.3.2.3.4."""

from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.dialogues.level_5.opened import opened
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import connack, properties, puback, pubcomp, publish, pubrec
from host_tests.standin.store import KeepingStore
from umqtt31 import JOURNAL, MQTTError

LEVELS = (5,)


def aliased(topics, most, **options):
    d = Dialogue(is_connected=False, **options)
    d.client.v5.topic_aliases = topics
    opened(d, d.connect_packet(False), connack(0, 0, properties(topic_alias_maximum=most)), False)
    return d


def with_alias(alias):
    return properties(topic_alias=alias)


def test_c2b_topic_goes_out_once_and_then_as_a_number():
    """MQTT-3.3.2-8, MQTT-3.3.2-9, MQTT-3.2.2-17."""
    for qos in (0, 1, 2):
        d = aliased(2, 10)
        for topic in (b"long/a", b"long/b", b"long/c", b"long/a", b"long/b"):
            packet_id = d.publish(b"x", qos, topic)
            if qos:
                d.b2c(pubrec(packet_id), pubcomp(packet_id), puback(packet_id))
        sent = [one for one in d.take_packets() if one[0] >> 4 == 3]
        assert sent == [
            publish(b"long/a", b"x", qos, 1, properties=with_alias(1)),
            publish(b"long/b", b"x", qos, 2, properties=with_alias(2)),
            publish(b"long/c", b"x", qos, 3),
            publish(b"", b"x", qos, 4, properties=with_alias(1)),
            publish(b"", b"x", qos, 5, properties=with_alias(2)),
        ], qos


def test_store_that_fails_as_an_alias_is_to_go_out_closes_the_stream():
    """The message is accepted, and poll() tells the error."""
    store = KeepingStore()
    d = aliased(2, 10, store=store)

    def fail():
        raise MQTTError(JOURNAL)

    store.before_commit = fail
    d.publish()
    assert d.stream.is_closed and not d.client.is_connected
    assert code_of(d.client.poll) == JOURNAL


def test_c2b_first_alias_of_a_topic_makes_no_packet_larger_than_the_broker_takes():
    """MQTT-3.2.2-15: it waits for a shorter message."""
    for size in range(10, 40):
        d = Dialogue(is_connected=False)
        d.client.v5.topic_aliases = 1
        said = properties(topic_alias_maximum=1, maximum_packet_size=40)
        opened(d, d.connect_packet(False), connack(0, 0, said), False)
        whole = publish(b"topic", b"x" * size)
        if len(whole) > 40:
            continue
        d.publish(b"x" * size, 0, b"topic")
        d.publish(b"y", 0, b"topic")
        first, second = d.take_packets()
        named = publish(b"topic", b"x" * size, properties=with_alias(1))
        assert first == (named if len(whole) + 5 <= 40 else whole)
        assert len(first) <= 40
        known = publish(b"", b"y", properties=with_alias(1))
        assert second == (
            known if first == named else publish(b"topic", b"y", properties=with_alias(1))
        )


def test_c2b_known_alias_of_a_short_topic_makes_no_packet_larger_than_the_broker_takes():
    """MQTT-3.2.2-15: an alias takes three bytes, this topic one."""
    for size in range(26, 34):
        d = Dialogue(is_connected=False)
        d.client.v5.topic_aliases = 1
        said = properties(topic_alias_maximum=1, maximum_packet_size=40)
        opened(d, d.connect_packet(False), connack(0, 0, said), False)
        d.publish(b"first", 0)
        d.publish(b"x" * size, 0)
        _, packet = d.take_packets()
        known = publish(b"", b"x" * size, properties=with_alias(1))
        assert packet == (known if size < 31 else publish(b"t", b"x" * size))
        assert len(packet) <= 40


def test_c2b_topic_that_may_change_gets_no_alias():
    d = aliased(2, 10)
    topic = bytearray(b"long/a")
    for _ in range(2):
        d.client.publish(topic, b"x", False, 0)
    assert [one for one in d.take_packets() if one[0] >> 4 == 3] == [publish(b"long/a", b"x")] * 2


def test_c2b_message_with_an_alias_whose_record_fails_closes_the_stream():
    """And another connection is as any."""
    flash = FailingFlash()
    d = aliased(1, 1, store=flash.journal(group_commit=True))
    flash.is_failing = True
    d.publish(b"0")
    assert d.stream.is_closed and not d.client.is_connected
    assert code_of(d.client.poll) == JOURNAL
    flash.is_failing = False
    d.connect(False)
    d.work()
    assert d.take_publishes() == [(b"0", 1, 1, 1)]
