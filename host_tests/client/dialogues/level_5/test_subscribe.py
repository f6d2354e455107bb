"""Options of a subscription, its identifier, and reasons in SUBACK and UNSUBACK.
MQTT 5 §3.8 to §3.11."""

from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import suback, subscribe
from umqtt31 import JOURNAL, MQTTError

LEVELS = (5,)


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
