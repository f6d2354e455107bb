"""Topic aliases: topics that go out as numbers.  MQTT 5 §3.3.2.3.4."""

from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.wire import properties, publish
from host_tests.standin.store import KeepingStore
from umqtt31 import JOURNAL, MQTTError

LEVELS = (5,)


def aliased(topics, most, **options):
    d = Dialogue(is_connected=False, **options)
    d.client.v5.topic_aliases = topics
    d.connect(False, False, properties(topic_alias_maximum=most))
    return d


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


def test_c2b_topic_that_may_change_gets_no_alias():
    d = aliased(2, 10)
    topic = bytearray(b"long/a")
    for _ in range(2):
        d.client.publish(topic, b"x", False, 0)
    assert [one for one in d.take_packets() if one[0] >> 4 == 3] == [publish(b"long/a", b"x")] * 2


def test_first_messages_make_no_attribute():
    """With the heap locked there may be no room for one."""
    d = aliased(2, 10)
    names = set(d.client.__dict__)
    for _ in range(2):
        d.client.publish(b"long/a", b"x", qos=1, properties=None)
    assert set(d.client.__dict__) == names
