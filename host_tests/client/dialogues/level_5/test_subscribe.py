"""Options of a subscription, its identifier, and reasons in SUBACK and UNSUBACK.
MQTT 5 §3.8 to §3.11."""

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import properties, suback, subscribe, unsuback, unsubscribe
from umqtt31 import JOURNAL, PROTOCOL, REFUSED_FILTER, MQTTError
from umqtt31.properties import encode
from umqtt31.v5 import NO_LOCAL, NO_RETAINED, RETAIN_AS_PUBLISHED, RETAINED_IF_NEW

LEVELS = (5,)


def test_c2b_subscribe_with_options_and_identifier():
    """MQTT-3.8.3-3, MQTT-3.8.1-1."""
    d = Dialogue()
    options = NO_LOCAL | RETAIN_AS_PUBLISHED | RETAINED_IF_NEW
    assert options == 0x1C and NO_RETAINED == 0x20
    said = properties(subscription_id=[300])
    request = subscribe(1, (b"a", 1 | options), properties=said)
    granted = d.subscribe(
        request, suback(1, 1), b"a", 1 | options, encode(subscription_identifier=300)
    )
    assert granted == [1]
    d.subscribe(subscribe(2, (b"b", 0), (b"c", 0x22)), suback(2, 0, 2), [(b"b", 0), (b"c", 0x22)])
    d.lose()
    d.connect(False, is_present=False)
    d.c2b(subscribe(3, (b"a", 1 | options), properties=said))
    d.b2c(suback(3, 1))
    d.c2b(subscribe(4, (b"b", 0), (b"c", 0x22)))
    d.b2c(suback(4, 0, 2))
    d.c2b()


def test_b2c_suback_with_reasons_refuses_filters_by_their_place():
    """MQTT-3.9.3-1, MQTT-3.8.4-7."""
    d = Dialogue()
    said = properties(reason_string=b"why")
    d.stream.answer(subscribe(1, (b"a", 1), (b"b", 1)), suback(1, 1, 0x87, properties=said))
    error = error_of(d.client.subscribe, [(b"a", 1), (b"b", 1)])
    assert error.code == REFUSED_FILTER and "b'b'" in str(error) and "b'a'" not in str(error)
    assert d.client.v5.reason == 0x87
    d.lose()
    d.connect(False, is_present=False)
    d.c2b(subscribe(2, (b"a", 1)))


def test_b2c_unsuback_with_reasons():
    """MQTT-3.11.3-1: a filter that was not there is fine, one that stays is told."""
    d = Dialogue()
    d.subscribe(subscribe(1, (b"a", 1)), suback(1, 1), b"a", 1)
    d.stream.answer(unsubscribe(2, b"a", b"b"), unsuback(2, 0, 0x11))
    d.client.unsubscribe([b"a", b"b"])
    d.stream.answer(unsubscribe(3, b"c", b"d"), unsuback(3, 0, 0x87))
    error = error_of(d.client.unsubscribe, [b"c", b"d"])
    assert error.code == REFUSED_FILTER and "b'd'" in str(error) and "b'c'" not in str(error)
    for bad in (unsuback(4, 0, 0), suback(4, 0), b"\xb0\x02\x00\x04"):
        d = Dialogue()
        d.stream.answer(unsubscribe(1, b"a"), bad.replace(b"\x00\x04", b"\x00\x01"))
        assert code_of(d.client.unsubscribe, b"a") == PROTOCOL


def test_filters_are_remembered_when_the_journal_fails_at_connack():
    store = FailingFlash().journal()
    d = Dialogue(store=store)
    d.subscribe(subscribe(1, (b"a", 1)), suback(1, 1), b"a", 1)
    d.lose()
    d.new_stream(False, False)
    stream, d.next_stream = d.next_stream, None

    def fail(first, packet_id):
        raise MQTTError(JOURNAL)

    real = store.note
    store.note = fail
    assert code_of(d.client.connect, False, stream) == JOURNAL
    store.note = real
    d.connect(False, is_present=False)
    d.work()
    d.c2b(subscribe(2, (b"a", 1)))
