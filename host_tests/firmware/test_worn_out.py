"""A node whose flash takes nothing any more, under real MicroPython: it goes on."""

import json

import pytest

from host_tests.brokers.ear import Ear
from host_tests.firmware.decoding import decode
from host_tests.patience import SECONDS
from tools.demo.desk import DeskNode
from tools.micropython import choose

# Its flash is worn out while there is a file "worn".
MAIN = """\
import os
import board
from umqtt31 import Journal

class Worn:
    def __init__(self, device):
        self.device = device
        self.readblocks = device.readblocks

    def is_worn(self):
        try:
            os.stat("worn")
            return True
        except OSError:
            return False

    def writeblocks(self, block, buf, offset):
        return self.is_worn() or self.device.writeblocks(block, buf, offset)

    def ioctl(self, op, arg):
        return op == 6 and self.is_worn() or self.device.ioctl(op, arg)

board.journal = lambda: Journal(Worn(board.journal_area()))
board.reset_cause = lambda: 4  # a sleep ends as a reset does
from start import start
start(board)
"""
SETTINGS = {"client_id": "worn", "store": "journal", "level": 4}
TOLD = "journal: stopped, messages wait in RAM"


class Field:
    """A node, and an ear for all that arrives of it."""

    def __init__(self, broker, path, main=MAIN, **settings):
        file = path / "on_worn_flash.py"
        file.write_text(main)
        place = {"server": broker.host, "port": broker.port, "prefix": path.name}
        self.node = DeskNode(choose(), path / "node", SETTINGS | place | settings, extra=file)
        self.is_worn = path / "node" / "worn"
        self._root = f"{path.name}/worn/"
        self._ear = Ear(broker.port)

    def payloads(self, topic):
        heard = list(self._ear.heard.queue)
        return [one.payload for one in heard if one.topic == self._root + topic]

    def readings(self, boot):
        found = [decode(one) for one in self.payloads("reading/0")]
        return [one["sequence"] for one in found if one["boot"] == boot]

    def await_readings(self, boot, count):
        self.node.wait_until(lambda: len(self.readings(boot)) >= count, SECONDS, "readings")

    def restart(self):
        """By a command, at QoS 2: nothing is lost."""
        self._ear.client.publish(f"{self._root}command", "reset", 2)
        assert self.node.wait(SECONDS) == 0
        self.node.start()

    def close(self):
        self.node.kill()
        self._ear.close()


@pytest.fixture
def make_field(shared_mosquitto, tmp_path):
    made = []

    def make(**settings):
        made.append(Field(shared_mosquitto, tmp_path, **settings))
        return made[0]

    yield make
    made[0].close()


def test_node_whose_journal_stops_goes_on_and_says_so_over_resets(make_field):
    """It took no reading and, after the next reset, no connection any more."""
    field = make_field(interval_ms=50)
    field.node.start()
    field.await_readings(1, 5)
    field.node.wait_until(lambda: field.payloads("health"), SECONDS, "health")
    field.is_worn.touch()
    field.node.wait_until(lambda: field.payloads("fault"), SECONDS, "fault")
    field.await_readings(1, len(field.readings(1)) + 20)
    field.restart()
    field.await_readings(2, 20)
    field.is_worn.unlink()  # it may have been the supply
    field.restart()
    field.await_readings(3, 20)
    field.restart()
    field.await_readings(4, 5)
    for boot in (1, 2, 3):
        numbers = field.readings(boot)
        assert numbers == list(range(1, len(numbers) + 1))
    assert field.payloads("fault") == [TOLD.encode()] * 2 + [b""]
    values = [dict(decode(one)["values"]) for one in field.payloads("health")]
    assert [one.get(23) for one in values[:4]] == [None, 1, 1, None]
    assert field.node.lines.count(TOLD) == 2


@pytest.mark.parametrize(
    ("settings", "well_at"),
    [
        ({"sleep_after": "acknowledged"}, None),
        ({"sleep_after": "stored"}, None),
        # It emptied the journal at each wake, and so never sent again.
        ({"sleep_after": "stored", "max_inflight": 2, "max_mqueue_len": 4}, 4),
    ],
    ids=["acknowledged", "stored", "works again"],
)
def test_sleeper_whose_journal_stops_sends_each_reading(make_field, settings, well_at):
    field = make_field(interval_ms=60_000, sleep_above_ms=1000, **settings)
    for wake in range(1, 8):
        field.node.start()
        assert field.node.wait(SECONDS) == 0
        if wake == 2:
            field.is_worn.touch()
        if wake == well_at:
            field.is_worn.unlink()
    assert field.readings(1) == [1, 2, 3, 4, 5, 6, 7]


def test_node_whose_journal_works_again_keeps_it_until_the_broker_is_there(make_field):
    """What it stored meanwhile was gone with the next start."""
    field = make_field(interval_ms=50)
    (field.node.folder / "state.json").write_text('{"boot": 0, "journal": "done"}')
    settings = field.node.folder / "settings.json"
    good = settings.read_text()
    settings.write_text(json.dumps(json.loads(good) | {"port": 1}))
    field.node.start()
    field.node.wait_for_readings(5)
    field.node.kill()
    settings.write_text(good)
    field.node.start()
    field.node.wait_until(lambda: field.payloads("fault") == [b""], SECONDS, "end of the fault")
    assert field.readings(1)[:5] == [1, 2, 3, 4, 5]


FULL = """\
import state

def save(state):
    raise OSError(28)

state.State.save = save
import board
from start import start
start(board)
"""


def test_node_that_cannot_count_its_start_works_all_the_same(make_field):
    """It reset for ever, as long as its filesystem was full."""
    field = make_field(main=FULL, store="ram", interval_ms=50)
    field.node.start()
    field.node.wait_until(lambda: len(field.payloads("reading/0")) > 5, SECONDS, "readings")
    assert field.node.lines[0] == "flash: 28"
    boots = {decode(one)["boot"] for one in field.payloads("reading/0")}
    assert len(boots) == 1
    assert boots.pop() >= 1 << 31
