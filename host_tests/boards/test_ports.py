"""What boards of a port share, under CPython: RP2's sleep with a chip of the test's own."""

import sys
from types import SimpleNamespace

import pytest

from host_tests.standin.clock import Clock
from tools.boards.places import BOARDS

WATCHDOG_MS = 8300


class Reset(BaseException):
    """The chip starts anew."""


class FakeRP2:
    """The module machine of an RP2: registers, watchdog and sleep, on a clock that is turned."""

    def __init__(self, clock):
        self.clock = clock
        self.mem32 = {0x4005800C: 0, 0x400D800C: 0}
        self.fed_at = None
        self.early_ms = 0  # by so much each light sleep ends too early
        self.cause = 1

    def WDT(self, timeout):
        assert timeout == WATCHDOG_MS
        self.fed_at = self.clock.now_ms

    def lightsleep(self, ms):
        self.clock.sleep_ms(max(ms - self.early_ms, 1))
        if self.fed_at is not None:
            assert self.clock.now_ms - self.fed_at < WATCHDOG_MS, "the watchdog bites"

    def reset(self):
        raise Reset

    def reset_cause(self):
        return self.cause


@pytest.fixture
def chip():
    return FakeRP2(Clock())


@pytest.fixture
def start(chip, monkeypatch):
    """start(machine) -> the module `port` of an RP2 that calls itself so, after a reset."""
    radio = []
    board = SimpleNamespace(NETWORK="wifi", WATCHDOG_MS=WATCHDOG_MS, radio=radio)
    wlan = SimpleNamespace(deinit=lambda: radio.append("off"))
    network = SimpleNamespace(STA_IF=0, WLAN=lambda interface: wlan)
    for module in ("machine", chip), ("board", board), ("network", network):
        monkeypatch.setitem(sys.modules, *module)
    monkeypatch.syspath_prepend(str(BOARDS / "ports"))

    def begin(name="Raspberry Pi Pico W with RP2040"):
        for module in ("rp2", "onchip"):
            sys.modules.pop(module, None)
        import rp2

        rp2.time = chip.clock
        rp2.sys = SimpleNamespace(implementation=SimpleNamespace(_machine=name))
        rp2.test_board = board
        return rp2

    yield begin
    for name in ("rp2", "onchip"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("early_ms", [0, 4000])
@pytest.mark.parametrize("has_watchdog", [True, False])
def test_rp2_sleeps_its_whole_time_with_the_radio_off_and_no_bite(
    chip, start, early_ms, has_watchdog
):
    """A watchdog of 8.3 s ended each machine.deepsleep(); USB wakes it too early."""
    port = start()
    port.test_board.WATCHDOG_MS = WATCHDOG_MS if has_watchdog else None
    chip.early_ms = early_ms
    with pytest.raises(Reset):
        port.sleep(900_000)
    assert chip.clock.now_ms == 900_000
    assert port.test_board.radio == ["off"]
    assert (chip.fed_at is not None) == has_watchdog


@pytest.mark.parametrize("name", ["Raspberry Pi Pico W with RP2040", "Pico 2 W with RP2350"])
def test_rp2_tells_its_wake_from_resets_and_from_a_start(chip, start, name):
    """To the chip all but the power's are by its watchdog: 3."""
    assert start(name).reset_cause() == 1
    chip.cause = 3
    for act, cause in (("sleep", 4), ("reset", 2)):
        with pytest.raises(Reset):
            getattr(start(name), act)(*([1000] if act == "sleep" else []))
        assert start(name).reset_cause() == cause
        # Once: the watchdog that bites next is told from it.
        assert start(name).reset_cause() == 3
    with pytest.raises(Reset):
        start(name).sleep(1000)
    chip.mem32, chip.cause = dict.fromkeys(chip.mem32, 0), 1  # the plug was pulled meanwhile
    assert start(name).reset_cause() == 1


def test_network_of_the_desk_is_always_up(monkeypatch):
    monkeypatch.syspath_prepend(str(BOARDS / "ports"))
    import unix

    network = unix.HostNetwork()
    assert network.is_up()
    assert (network.why, network.rssi(), network.find_dns()) == (None, None, None)
