"""Random programs of asyncio tasks over resets break no promise, and wrong stores and fronts
would be noticed.

Shows 31-4.1-Q1, 31-4.1-Q2 and MQTT-4.3.3-10 for `umqtt31.aio` with a store that outlives resets.
"""

from functools import partial

import pytest

from host_tests.sim.reboots import Program
from host_tests.sim.records import Records
from host_tests.sim.seeds import breaks_its_rule, by_name, keep_all_promises
from host_tests.sim.store import SurvivingStore
from umqtt31 import Journal, aio, opening

BATCHES = 2
SEEDS = 25


def keeps_nothing_of_it(_record):
    return lambda store, packet_id: None


def says_it_is_kept(put):
    def wrong(store, *message):
        was_deferred = store.is_deferred
        store.is_deferred = True
        is_put = put(store, *message)
        store.is_deferred = was_deferred
        return is_put

    return wrong


def takes_any_level(refuse):
    return lambda text: None if "level" in text else refuse(text)


def acknowledges_what_no_connection_awaits(settle):
    def wrong(client):
        for one in client._taken:
            one._link = client._link
        settle(client)

    return wrong


WRONG = by_name(
    (keeps_nothing_of_it, SurvivingStore, "hold", 1, "MQTT-4.3.3-10"),
    (says_it_is_kept, Journal, "put", 10, "31-4.1-Q2"),
    (takes_any_level, opening, "_refuse", 2, "publish"),
    (acknowledges_what_no_connection_awaits, aio.MQTTClient, "_settle", 6, "MQTT-4.6.0-2"),
)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_programs_of_tasks_over_resets_break_no_promise(batch):
    keep_all_promises(Program, range(batch * SEEDS, (batch + 1) * SEEDS))


def test_program_that_resets_before_its_clean_session_begins_breaks_no_promise():
    keep_all_promises(partial(Program, over=Records), [2001274])


def test_program_that_resets_before_its_new_session_is_recorded_breaks_no_promise():
    """It goes on with a PUBREL of the session before, whose answer ends the message."""
    keep_all_promises(Program, [1000488])


def test_program_whose_place_is_held_by_a_session_that_is_over_gets_all_when_that_is_forgotten():
    """A CONNECT that was under way for long made another session, which level 3 cannot tell."""
    keep_all_promises(Program, [1001296])


@pytest.mark.parametrize("name", WRONG)
def test_wrong_store_or_front_is_noticed(name, monkeypatch):
    breaks_its_rule(WRONG[name], Program, monkeypatch)
