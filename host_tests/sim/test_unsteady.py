"""The random programs of all fronts break no promise over streams that do everything a stream
may: few bytes, none, an error from any call; wrong fronts would be noticed.

Shows 31-4.1-Q1, 31-4.1-Q2 and MQTT-4.3.3-10 over such streams.
"""

from functools import partial

import pytest

from host_tests.sim import blocking, calls, reboots, tasks
from host_tests.sim.seeds import breaks_its_rule, keep_all_promises
from host_tests.sim.unsteady import Unsteady
from umqtt31 import MQTTClient

SEEDS = {calls: 60, tasks: 30, reboots: 30, blocking: 100}


def goes_on_with_the_stream(_lose):
    return lambda client, error: None


def takes_zero_bytes_for_all(_push):
    def wrong(client):
        protocol = client._protocol
        try:
            while protocol.left or protocol.is_due and protocol.next():
                n = protocol.write(protocol.out, protocol.end - protocol.left, protocol.left)
                if n is None:
                    protocol.wait(0)
                    return
                protocol.left -= n or protocol.left
        except Exception as error:
            client._lose(error)

    return wrong


WRONG = (
    (calls, goes_on_with_the_stream, MQTTClient, "_lose", 0, "stream"),
    (calls, takes_zero_bytes_for_all, MQTTClient, "_push", 5, "MQTT-4.3.3-11"),
    (tasks, goes_on_with_the_stream, MQTTClient, "_lose", 1, "stream"),
    (blocking, goes_on_with_the_stream, MQTTClient, "_lose", 0, "stream"),
)


@pytest.mark.parametrize("front", SEEDS, ids=lambda front: front.__name__)
def test_programs_over_unsteady_streams_break_no_promise(front):
    keep_all_promises(partial(front.Program, over=Unsteady), range(SEEDS[front]))


def test_request_that_waits_for_room_to_go_out_again_may_do_so_behind_its_answer():
    keep_all_promises(partial(calls.Program, over=Unsteady), [20381])


@pytest.mark.parametrize(("front", "change", "owner", "step", "seed", "rule"), WRONG)
def test_wrong_front_over_unsteady_streams_is_noticed(
    front, change, owner, step, seed, rule, monkeypatch
):
    wrong = change, owner, step, seed, rule
    breaks_its_rule(wrong, partial(front.Program, over=Unsteady), monkeypatch)
