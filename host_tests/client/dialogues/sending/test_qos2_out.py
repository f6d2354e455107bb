"""Publishing at QoS 2 on the wire.  MQTT 3.1 §3.5 to §3.7, §4.1, §4.3."""

from host_tests.client.dialogue import Dialogue
from host_tests.client.wire import pubcomp, pubrec
from host_tests.standin.store import KeepingStore


def test_c2b_qos2_id_is_used_again_only_after_pubcomp():
    """MQTT-4.3.3-1, MQTT-4.3.3-5.

    C: PUBLISH 65535, B: PUBREC 65535, C: PUBREL 65535
       (the id has to be left out by the next life, which starts at 65535)
    """
    store = KeepingStore()
    store.last_id = 65534
    d = Dialogue(store=store)
    assert d.publish(qos=2) == 65535
    d.b2c(pubrec(65535))
    again = Dialogue(store=store, clean=False)
    assert again.publish(qos=2) == 1
    again.b2c(pubcomp(65535), pubrec(1), pubcomp(1))
    third = Dialogue(store=store, clean=False)
    assert third.publish(qos=2) == 65535
