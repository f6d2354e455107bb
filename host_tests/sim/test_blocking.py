"""Random programs over `umqtt31.simple` and `umqtt31.robust` break no promise, and wrong fronts
would be noticed.

Shows MQTT-4.3.2-4, MQTT-4.3.3-5, MQTT-4.3.3-10, MQTT-4.6.0-2, MQTT-4.6.0-3, 31-3.9-SUBACK,
31-4.1-Q1 and 31-4.1-Q2 for them.
"""

import pytest

import umqtt31
from host_tests.sim.blocking import Program
from host_tests.sim.seeds import breaks_its_rule, by_name, keep_all_promises
from umqtt31 import robust, simple

BATCHES = 4
SEEDS = 100


def returns_before_its_answer(_settle):
    return lambda client: None


def keeps_what_is_in_flight(_connect):
    def wrong(self, clean=True, timeout=None, stream=None):
        begin = self._identity[0]
        self._identity = begin, self.client_id.encode(), None, None
        self._most_acks = 100
        stream = stream and simple._Stream(stream)
        return umqtt31.MQTTClient.connect(self, clean, stream)

    return wrong


def publishes_once(_publish):
    def wrong(self, *args):
        try:
            self._publish_once(*args)
        except OSError as error:
            self._on_loss(error)

    return wrong


WRONG = by_name(
    (returns_before_its_answer, simple.MQTTClient, "_settle", 0, "publish"),
    (keeps_what_is_in_flight, simple.MQTTClient, "connect", 7, "31-2.1-DUP"),
    (publishes_once, robust.MQTTClient, "publish", 14, "publish"),
)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_programs_that_wait_in_publish_break_no_promise(batch):
    keep_all_promises(Program, range(batch * SEEDS, (batch + 1) * SEEDS))


@pytest.mark.parametrize("name", WRONG)
def test_wrong_front_is_noticed(name, monkeypatch):
    breaks_its_rule(WRONG[name], Program, monkeypatch)
