"""The random programs of all fronts break no promise over TLS, where a write that takes nothing
has taken its bytes for good; wrong fronts would be noticed.

Shows 31-4.1-Q1, 31-4.1-Q2, MQTT-4.3.3-11 and MQTT-4.6.0-4 over such streams.
"""

from functools import partial

import pytest
from umqtt31.protocol import Protocol

from host_tests.sim import blocking, calls, tasks
from host_tests.sim.records import Records
from host_tests.sim.seeds import breaks_its_rule, keep_all_promises
from umqtt31 import MQTTClient, simple

SEEDS = {calls: 80, tasks: 60, blocking: 150}


def writes_others_with_it(on_first_pubrec):
    def wrong(protocol, slot):
        was_free = not protocol.left
        on_first_pubrec(protocol, slot)
        if was_free and protocol.left == 4:
            protocol.left = 0
            protocol._answer(0x62, protocol._ids[slot])

    return wrong


def takes_it_for_written(push):
    def wrong(client):
        push(client)
        client._protocol.left = 0

    return wrong


WRONG = (
    (tasks, writes_others_with_it, Protocol, "_on_first_pubrec", 61, "TLS"),
    (calls, takes_it_for_written, MQTTClient, "_push", 3, "TLS"),
    (blocking, takes_it_for_written, simple.MQTTClient, "_push", 3, "TLS"),
)


@pytest.mark.parametrize("front", SEEDS, ids=lambda front: front.__name__)
def test_programs_over_tls_break_no_promise(front):
    keep_all_promises(partial(front.Program, over=Records), range(SEEDS[front]))


@pytest.mark.parametrize("seed", [931, 1823])
def test_message_whose_topic_is_a_number_when_it_found_no_room_may_carry_dup(seed):
    keep_all_promises(partial(calls.Program, over=Records), [seed])


def test_message_that_found_no_room_is_not_given_up_and_has_no_age_any_more():
    keep_all_promises(partial(calls.Program, over=Records), [21178, 21362])


def test_message_when_it_was_refused_and_then_taken_may_come_again_after_a_reset():
    keep_all_promises(partial(calls.Program, over=Records), [268])


def test_message_of_qos0_that_is_given_up_is_none_that_has_a_new_id_in_a_new_session():
    keep_all_promises(partial(calls.Program, over=Records), [2007026])


def test_pubrec_that_came_again_before_its_pubcomp_may_be_answered_on_the_next_connection():
    keep_all_promises(partial(calls.Program, over=Records), [2008098])


@pytest.mark.parametrize(("front", "change", "owner", "step", "seed", "rule"), WRONG)
def test_wrong_front_over_tls_is_noticed(front, change, owner, step, seed, rule, monkeypatch):
    wrong = change, owner, step, seed, rule
    breaks_its_rule(wrong, partial(front.Program, over=Records), monkeypatch)
