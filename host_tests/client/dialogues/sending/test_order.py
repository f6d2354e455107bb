"""Order as a promise: ordered=True.  MQTT 5 §4.6; the message-ordering note."""

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.wire import puback, publish
from host_tests.standin.store import KeepingStore
from umqtt31 import BUSY


def test_ordered_second_task_inside_publish_gets_a_clear_error():
    """SIB-SINGLE: a second publish() begins while the first is inside."""
    store = KeepingStore()
    d = Dialogue(ordered=True, store=store)
    codes = []

    def second_task():
        store.before_put = None
        codes.append(code_of(d.publish, b"second"))

    store.before_put = second_task
    assert d.publish(b"first") == 1
    assert codes == [BUSY]
    d.c2b(publish(b"t", b"first", 1, 1))
    d.b2c(puback(1))
    d.publish(b"third")
    d.c2b(publish(b"t", b"third", 1, 2))


def test_ordered_errors_say_what_is_allowed():
    """SIB-ENFORCE, SIB-SINGLE."""
    store = KeepingStore()
    d = Dialogue(ordered=True, store=store)
    rule = "ordered: one QoS, 1 or 2, for all, and no max_age"
    assert str(error_of(d.publish, b"x", 0)) == rule
    assert str(error_of(d.publish, b"x", 1, max_age=5)) == rule
    errors = []

    def second_task():
        store.before_put = None
        errors.append(error_of(d.publish, b"second"))

    store.before_put = second_task
    d.publish(b"first")
    assert str(errors[0]) == "ordered: publish() from one task at a time"
