"""What a payload may be: bytes, bytearray, memoryview, str; anything else is a TypeError."""

import array

from host_tests.client.dialogue import Dialogue, error_of
from host_tests.client.wire import publish


def test_payload_of_another_type_is_a_type_error_that_names_msg():
    d = Dialogue()
    for bad in ([1, 2], {1: 2}, {1, 2}, (1, 2), 5, 1.5, None, object(), len):
        for qos in (0, 1, 2):
            error = error_of(d.publish, bad, qos)
            assert isinstance(error, TypeError), (bad, error)
            assert "msg" in str(error), (bad, error)
    d.c2b()
    assert d.client.inflight == d.client.queued == 0
    assert d.publish() == 1


# Its length counts elements, so it must not go out as that many bytes.
def test_payload_of_wide_elements_goes_out_whole_or_not_at_all():
    for code in "HIhi":
        payload = array.array(code, [1, 2, 3])
        values = [payload]
        if hasattr(memoryview(b""), "itemsize"):  # else a port cannot tell
            values.append(memoryview(payload))
        for value in values:
            for qos in (0, 1):
                d = Dialogue()
                try:
                    d.publish(value, qos)
                except TypeError as error:
                    assert "msg" in str(error), error
                    d.c2b()
                else:
                    d.c2b(publish(b"t", bytes(payload), qos, qos))


def test_payload_of_single_bytes_goes_out_as_it_is():
    for payload in (bytearray(b"xyz"), memoryview(b"xyz"), array.array("B", b"xyz"), "xyz"):
        d = Dialogue()
        d.publish(payload, 0)
        d.c2b(publish(b"t", b"xyz"))


# The same for the long way, behind a queue.
def test_payload_of_another_type_while_offline_is_refused_and_nothing_is_kept():
    d = Dialogue(is_connected=False, buffer_size=1024)
    for bad in ([0] * 300, {1: 2}, {1, 2}, None, 7):
        error = error_of(d.publish, bad, 1)
        assert isinstance(error, TypeError) and "msg" in str(error), (bad, error)
    assert d.client.queued == 0
