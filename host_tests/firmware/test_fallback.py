"""The journal stops for good, and the client goes on: what is new waits in RAM."""

from types import SimpleNamespace

import pytest

import umqtt31
from assemble import assemble
from fallback import Fallback
from host_tests.client import wire
from host_tests.client.conftest import restore_modules  # noqa: F401 - for each test
from host_tests.client.dialogue import Dialogue, error_of
from host_tests.firmware.node_bench import CONFIG, FakeNetwork
from host_tests.journal.steps import fails
from host_tests.standin.nor import Flash
from state import DONE, WELL, State
from umqtt31 import FULL, JOURNAL, Journal, MQTTError

DEAD = dict.fromkeys(range(16), False)
SAYS_SO = dict.fromkeys(range(16), True)


@pytest.fixture(params=[DEAD, SAYS_SO], ids=["silent", "says so"])
def worn(request):
    return request.param


@pytest.fixture
def flash():
    return Flash(16)


def life(flash, is_done=False, **options):
    """The client of one life, not connected -> (dialogue, store)."""
    store = Fallback(Journal(flash), is_done)
    return Dialogue(is_connected=False, level=4, store=store, **options), store


def test_plain_journal_that_stopped_takes_no_message_and_no_connection(flash, worn):
    """What a program meets that does without: nothing goes out, not even QoS 0."""
    d = Dialogue(is_connected=False, level=4, store=Journal(flash))
    d.publish(b"kept")
    flash.worn = worn
    assert error_of(d.publish, b"new").code == JOURNAL
    d.new_stream(False)
    assert error_of(d.client.connect, False).code == JOURNAL
    assert not d.client.is_connected
    assert error_of(d.publish, b"new", qos=0).code == umqtt31.CLOSED
    assert d.client.queued == 1


def test_what_is_new_and_what_the_journal_holds_goes_out_in_its_order(flash, worn):
    d, store = life(flash)
    d.publish(b"1")
    flash.worn = worn
    d.publish(b"2")
    assert store.has_failed
    assert store.in_ram == 1
    d.connect(False, True)
    d.publish(b"3", qos=2)
    d.publish(b"4", qos=0)
    d.work()
    assert d.take_publishes() == [
        (b"1", 1, 1, False), (b"2", 1, 2, False), (b"3", 2, 3, False), (b"4", 0, 0, False),
    ]  # fmt: skip
    d.b2c(wire.puback(1), wire.puback(2), wire.pubrec(3))
    d.c2b(wire.pubrel(3))
    d.b2c(wire.pubcomp(3))
    assert d.client.flush(100)
    assert store.in_ram == 0


def test_ram_has_room_for_twenty_messages_whatever_the_queue_is(flash, worn):
    d, store = life(flash, max_mqueue_len=60)
    flash.worn = worn
    for _ in range(20):
        d.publish()
    assert error_of(d.publish).code == FULL
    assert store.in_ram == 20
    d.connect(False, True)
    d.work()
    d.b2c(wire.puback(1))
    assert d.publish() == 21


def test_messages_that_come_while_it_stops_are_handed_over_once(flash, worn):
    d, store = life(flash)
    d.connect(False, True)
    flash.worn = worn
    first = wire.publish(b"t", b"1", 2, 7)
    d.b2c(first)
    assert store.has_failed
    d.c2b(wire.pubrec(7))
    d.b2c(first, wire.pubrel(7), wire.publish(b"t", b"2", 2, 7))
    assert [one[1] for one in d.messages] == [b"1", b"2"]


def test_reset_finds_what_the_journal_held_and_goes_on_in_ram(flash, worn):
    """The broker has it already: nothing could be written about that."""
    d, _ = life(flash)
    d.publish(b"1")
    flash.worn = worn
    d.publish(b"2")
    d.connect(False, True)
    d.work()
    d.b2c(wire.puback(1))
    again, store = life(flash)
    assert (again.client.queued, store.in_ram) == (1, 0)
    again.publish(b"3")
    again.connect(False, True)
    again.work()
    assert [one[0] for one in again.take_publishes()] == [b"1", b"3"]


def test_reset_that_knows_that_all_went_out_sends_it_no_more(flash, worn):
    d, _ = life(flash)
    d.publish(b"1")
    flash.worn = worn
    again, store = life(flash, is_done=True)
    assert store.has_failed
    assert again.client.queued == 0
    again.publish(b"2")
    assert (store.in_ram, store.bad_blocks(), store.corrupt_pages) == (1, 0, 0)


def test_flash_that_is_well_again_takes_messages_after_a_reset(flash):
    d, _ = life(flash)
    d.publish(b"1")
    again, store = life(flash, is_done=True)
    again.publish(b"2")
    assert not store.has_failed
    last, _ = life(flash)
    assert last.client.queued == 1


def test_flash_that_cannot_be_read_at_the_start_is_left_alone(flash):
    flash.watch_read = fails
    d, store = life(flash)
    d.publish(b"1")
    assert (store.has_failed, store.in_ram) == (True, 1)


def test_message_that_cannot_be_read_any_more_is_given_up_and_told(flash):
    life(flash)[0].publish(b"1")
    d, store = life(flash)
    drops = []
    d.client.on_drop = lambda packet_id, reason: drops.append(reason)
    flash.watch_read = fails
    d.publish(b"2")
    d.connect(False, True)
    d.work()
    assert [one[0] for one in d.take_publishes()] == [b"2"]
    assert drops == [JOURNAL]


def test_journal_of_another_client_is_refused_as_ever(flash):
    d = Dialogue(is_connected=False, level=4, store=Journal(flash))
    d.publish()
    with pytest.raises(MQTTError, match="is of client b'dev'"):
        umqtt31.MQTTClient("other", "broker", store=Fallback(Journal(flash)))


@pytest.mark.parametrize(("store", "journal"), [("journal", WELL), ("ram", DONE)])
def test_waking_node_writes_down_that_its_journal_works_again(
    flash, tmp_path, monkeypatch, store, journal
):
    """A reset before the end of this wake would have emptied the journal once more."""
    monkeypatch.chdir(tmp_path)
    state = State()
    state.keep_journal(DONE)
    state.fall_asleep({"accepted": [7]})
    board = SimpleNamespace(
        NAME="fake", NETWORK="host", HostNetwork=FakeNetwork, LED_PIN=None,
        WATCHDOG_MS=None, journal=lambda: Journal(flash), reset_cause=lambda: 4, sensors=list,
        now=int, set_clock=None,
    )  # fmt: skip
    assert assemble(CONFIG | {"store": store, "streams": [1]}, board)
    assert (State().journal, State().asleep["accepted"]) == (journal, [7])
