"""Random programs that call anything of `umqtt31.MQTTClient` at any moment break no promise, and
wrong clients would be noticed.

Shows MQTT-3.2.2-15, MQTT-4.3.2-4, MQTT-4.13.1-1, RT-MQUEUE and RT-OBJECTS for such programs.
"""

from functools import partial

import pytest
from umqtt31.protocol import Protocol

from host_tests.sim.calls import Program
from host_tests.sim.records import Records
from host_tests.sim.seeds import breaks_its_rule, by_name, keep_all_promises
from umqtt31 import MQTTClient
from umqtt31 import client as client_module
from umqtt31.alias import Aliases
from umqtt31.v5 import Protocol5

BATCHES = 4
SEEDS = 50
AUTH = 15


def takes_filters_for_known(begin_session):
    def wrong(protocol):
        event = begin_session(protocol)
        protocol._known = protocol._asked = len(protocol.filters)
        protocol.request = None
        return event

    return wrong


def writes_aliases_of_any_length(shorten):
    def wrong(aliases, protocol, *message):
        most = protocol._most_bytes
        protocol._most_bytes = 65535
        try:
            shorten(aliases, protocol, *message)
        finally:
            protocol._most_bytes = most

    return wrong


def holds_what_it_refused(acknowledge):
    def wrong(protocol, qos, packet_id, now):
        if qos == 2 and protocol.message.reason and protocol.held.has_room(packet_id):
            protocol.store.hold(packet_id)
            protocol.held.add(packet_id, now)
        acknowledge(protocol, qos, packet_id, now)

    return wrong


def passes_over_auth(handle):
    return lambda protocol, first: 1 if first >> 4 == AUTH else handle(protocol, first)


def looks_at_no_age_offline(rest):
    def wrong(client):
        if client.is_connected:
            rest(client)
        else:
            client._protocol.store.commit()
            client._protocol.drowse(client_module.time.ticks_ms())

    return wrong


WRONG = by_name(
    (takes_filters_for_known, Protocol, "_begin_session", 9, "RT-OBJECTS"),
    (writes_aliases_of_any_length, Aliases, "shorten", 50, "MQTT-3.2.2-15"),
    (holds_what_it_refused, Protocol5, "acknowledge", 24, "MQTT-4.3.2-4"),
    (passes_over_auth, Protocol5, "_handle", 16, "MQTT-4.13.1-1"),
    (looks_at_no_age_offline, MQTTClient, "_rest", 7, "max_age"),
)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_programs_that_call_anything_break_no_promise(batch):
    keep_all_promises(Program, range(batch * SEEDS, (batch + 1) * SEEDS))


def test_programs_that_reset_before_a_new_session_is_recorded_break_no_promise():
    keep_all_promises(Program, (1777, 2218, 2555))
    keep_all_promises(partial(Program, over=Records), [21352])


def test_program_over_resets_when_what_was_given_up_comes_back_breaks_no_promise():
    keep_all_promises(partial(Program, over=Records), [22851])


def test_program_with_pubrecs_that_came_again_before_their_pubrels_breaks_no_promise():
    keep_all_promises(Program, [25819])


@pytest.mark.parametrize("name", WRONG)
def test_wrong_client_is_noticed(name, monkeypatch):
    breaks_its_rule(WRONG[name], Program, monkeypatch)
