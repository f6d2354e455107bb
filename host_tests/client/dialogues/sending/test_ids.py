"""Packet ids: where they begin, and that none is used twice at a time.  MQTT 3.1 §2.4."""

from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.flash import FailingFlash
from host_tests.standin.store import KeepingStore
from umqtt31 import FULL, TOO_LARGE


# MQTT-4.3.3-10: a broker may hold the ids of the life before, so these must not come again.
def test_first_id_in_ram_when_many_clients_are_made_then_is_spread_over_all_ids():
    ids = [Dialogue(is_connected=False, is_random=True).publish() for _ in range(64)]
    assert len(set(ids)) > 48
    assert min(ids) < 24000 and max(ids) > 42000
    assert all(1 <= packet_id <= 65535 for packet_id in ids)


# 31-2.4-ID: they are counted up from there, past 65535 and never 0.
def test_ids_in_ram_when_first_is_random_then_follow_each_other():
    for _ in range(20):
        d = Dialogue(is_connected=False, is_random=True)
        first = d.publish()
        for k in range(1, 5):
            assert d.publish() == (first + k - 1) % 65535 + 1


# A journal goes on behind the last one.
def test_first_id_with_a_journal_when_opened_again_then_follows_the_last():
    flash = FailingFlash()
    last = Dialogue(is_connected=False, is_random=True, store=flash.journal()).publish()
    again = Dialogue(is_connected=False, is_random=True, store=flash.journal()).publish()
    assert again == last % 65535 + 1


def test_id_after_a_refused_publish_is_not_one_in_use():
    for is_too_large in (False, True):
        store = KeepingStore()
        d = Dialogue(store=store, is_connected=False)
        assert [d.publish(b"%d" % k) for k in (1, 2, 3, 4, 5)] == [1, 2, 3, 4, 5]
        del store.kept[2:4], store.kept[0]  # 1, 3 and 4 are done
        store.last_id = 1
        again = Dialogue(store=store, is_connected=False, max_mqueue_len=3)
        if is_too_large:
            assert code_of(again.publish, b"x" * 300) == TOO_LARGE
            assert code_of(again.publish, b"x" * 300) == TOO_LARGE
        else:
            store.slots = 2
            assert code_of(again.publish, b"no room") == FULL
            store.slots = 20
        assert again.publish(b"3") == 3
        ids = [entry[1] for entry in store.kept]
        assert len(set(ids)) == len(ids)
