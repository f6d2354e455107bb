"""Random programs of asyncio tasks break no promise, and wrong fronts would be noticed.

Shows MQTT-4.3.2-4, MQTT-4.3.3-10, MQTT-4.6.0-2, MQTT-4.6.0-3, 31-4.1-Q1 and 31-4.1-Q2 for
`umqtt31.aio`.
"""

import pytest

from host_tests.sim.seeds import breaks_its_rule, by_name, keep_all_promises
from host_tests.sim.tasks import Program
from umqtt31 import aio

BATCHES = 5
SEEDS = 25


def done_when_handed(_next):
    def wrong(messages, _=None):
        try:
            return _next(messages)
        except StopIteration as handed:
            handed.value.done()
            raise

    return wrong


def stands_where_it_came_first(take_in):
    def wrong(client, message):
        before = [one for one in client._taken if one.packet_id]
        take_in(client, message)
        after = [one for one in client._taken if one not in before]
        client._taken[:] = before + after

    return wrong


def forgets_what_is_taken(take_in):
    def wrong(client, message):
        for one in client._taken:
            one.packet_id = 0
        take_in(client, message)

    return wrong


WRONG = by_name(
    (done_when_handed, aio._Messages, "__next__", 0, "MQTT-4.3.2-4"),
    (stands_where_it_came_first, aio.MQTTClient, "_take_in", 16, "MQTT-4.6.0-2"),
    (forgets_what_is_taken, aio.MQTTClient, "_take_in", 5, "MQTT-4.3.3-10"),
)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_programs_of_tasks_break_no_promise(batch):
    keep_all_promises(Program, range(batch * SEEDS, (batch + 1) * SEEDS))


@pytest.mark.parametrize("name", WRONG)
def test_wrong_front_is_noticed(name, monkeypatch):
    breaks_its_rule(WRONG[name], Program, monkeypatch)
