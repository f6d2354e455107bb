"""Random programs over `umqtt31.simple` and `umqtt31.robust` break no promise, and wrong fronts
would be noticed.

Shows MQTT-4.3.2-4, MQTT-4.3.3-5, MQTT-4.3.3-10, MQTT-4.6.0-2, MQTT-4.6.0-3, 31-3.9-SUBACK,
31-4.1-Q1 and 31-4.1-Q2 for them.
"""

import pytest

from host_tests.sim.blocking import Program
from host_tests.sim.seeds import breaks_its_rule, by_name, keep_all_promises
from umqtt31 import client, robust, simple

BATCHES = 4
SEEDS = 100


def returns_before_its_answer(_settle):
    return lambda client: None


def keeps_what_is_in_flight(_connect):
    def wrong(self, clean=True, timeout=None, stream=None):
        level = self._identity[0]
        self._identity = level, self.client_id.encode(), None, None, self.keepalive
        return client.MQTTClient.connect(self, clean, stream)

    return wrong


def leaves_its_answer_to_others(_await_answer):
    return client.MQTTClient._await_answer


def publishes_once(_publish):
    def wrong(self, *args):
        try:
            self._publish_once(*args)
        except OSError as error:
            self._on_loss(error)

    return wrong


def tells_the_newest_refusal(give_up):
    class Newest(dict):
        def pop(self, packet_id, default):
            return self.reason

    def wrong(self, k, reason):
        give_up(self, k, reason)
        self._refused = Newest(self._refused)
        self._refused.reason = reason

    return wrong


WRONG = by_name(
    (returns_before_its_answer, simple.MQTTClient, "_settle", 0, "publish"),
    (keeps_what_is_in_flight, simple.MQTTClient, "connect", 5, "31-2.1-DUP"),
    (leaves_its_answer_to_others, simple.MQTTClient, "_await_answer", 29, "31-3.9-SUBACK"),
    (publishes_once, robust.MQTTClient, "publish", 5, "publish"),
    (tells_the_newest_refusal, simple.MQTTClient, "_give_up", 12, "MQTT-4.3.3-5"),
)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_programs_that_wait_in_publish_break_no_promise(batch):
    keep_all_promises(Program, range(batch * SEEDS, (batch + 1) * SEEDS))


@pytest.mark.parametrize("name", WRONG)
def test_wrong_front_is_noticed(name, monkeypatch):
    breaks_its_rule(WRONG[name], Program, monkeypatch)
