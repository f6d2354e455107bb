"""umqtt31.wifi: joined again with growing pauses, left alone while up, and why it is not."""

import asyncio
import sys
from unittest.mock import Mock

import pytest

from host_tests.standin import wlan as network
from host_tests.standin.clock import Clock


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def make(monkeypatch, clock):
    """make(…) -> a WiFi over the stand-in."""
    monkeypatch.setitem(sys.modules, "network", network)
    monkeypatch.delitem(sys.modules, "umqtt31.wifi", raising=False)
    from umqtt31 import wifi

    monkeypatch.setattr(wifi, "time", clock)
    monkeypatch.setattr(network, "countries", [])
    yield wifi.WiFi
    sys.modules.pop("umqtt31.wifi", None)


@pytest.fixture
def wifi(make):
    return make("home", "password")


def test_wifi_while_up_is_never_touched(wifi, clock):
    wifi.wlan.is_in_reach = True
    assert wifi.is_up(100)
    wifi.wlan.calls.clear()
    for _ in range(100):
        assert wifi.is_up()
        clock.sleep_ms(60_000)
    assert wifi.wlan.calls == []


def test_wifi_while_down_joins_with_growing_pauses(wifi, clock):
    wifi.wlan.is_trying = True
    tries = []
    for _ in range(240):
        before = len(wifi.wlan.calls)
        assert not wifi.is_up()
        if len(wifi.wlan.calls) > before:
            tries.append(clock.now_ms)
        clock.sleep_ms(1000)
    assert tries == [0, 5000, 15_000, 35_000, 75_000, 135_000, 195_000]
    assert ("home", "password") in wifi.wlan.calls


@pytest.mark.parametrize("password", ["", None])
def test_wifi_without_password_joins_an_open_network(make, password):
    wifi = make("cafe", password)
    wifi.is_up()
    assert wifi.wlan.calls[-1] == ("cafe",)


def test_wifi_back_after_a_loss_starts_with_the_short_pause(wifi, clock):
    for _ in range(4):
        wifi.is_up()
        clock.sleep_ms(60_000)
    wifi.wlan.is_up = True
    assert wifi.is_up()
    wifi.wlan.is_up = False
    wifi.wlan.calls.clear()
    for _ in range(6):
        wifi.is_up()
        clock.sleep_ms(1000)
    assert wifi.wlan.calls == ["disconnect", ("home", "password")] * 2


def test_wifi_that_nobody_asked_for_days_joins_at_once(wifi, clock):
    wifi.is_up()
    clock.sleep_ms(7 * 86_400_000)  # more than half of the ticks' period
    wifi.wlan.is_in_reach = True
    assert wifi.is_up(100)


def test_wifi_waits_as_long_as_asked_and_not_longer_than_needed(wifi, clock):
    assert not wifi.is_up(330)
    assert clock.now_ms == 330
    wifi.wlan.is_up = True
    assert wifi.is_up(10_000)
    assert clock.now_ms == 330


def test_wifi_tells_once_when_the_link_comes_and_goes(wifi):
    told = []
    wifi.on_change = told.append
    for is_up in (False, False, True, True, False, False, True):
        wifi.wlan.is_up = is_up
        assert wifi.is_up() == is_up
    assert told == [True, False, True]


@pytest.mark.parametrize(
    ("status", "dbm", "why"),
    [
        (202, None, "home: wrong password"),
        (204, None, "home: wrong password"),
        (201, None, "home: no ap found"),
        (-1, None, "home: connect fail"),
        (2, None, "home: no address"),
        (1, -60, "home: no address"),
        (1, None, "home: no answer"),
        (1, 0, "home: no answer"),
        (3, None, "home: no answer"),  # it got its address, and lost the link at once
    ],
)
def test_wifi_that_fails_says_why_in_words(wifi, clock, status, dbm, why):
    wifi.wlan.number, wifi.wlan.dbm = status, dbm
    assert not wifi.is_up()
    assert wifi.why is None  # it has only begun
    clock.sleep_ms(5000)
    assert not wifi.is_up()
    assert wifi.why == why
    wifi.wlan.is_up = True
    assert wifi.is_up()
    assert wifi.why is None


@pytest.mark.parametrize(
    ("platform", "pm", "told"),
    [("rp2", None, [{"pm": 0xA11140}]), ("rp2", 7, [{"pm": 7}])]
    + [("esp32", None, []), ("esp32", 0, [{"pm": 0}])],
)
def test_wifi_radio_is_off_until_asked_then_gets_its_power(make, monkeypatch, platform, pm, told):
    monkeypatch.setattr(sys, "platform", platform)
    wifi = make("home", pm=pm)
    assert wifi.wlan.calls == []
    wifi.is_up()
    assert wifi.wlan.calls == ["active", "disconnect", ("home",), *told]


def test_wifi_sets_the_country_where_the_port_has_one(make, monkeypatch):
    make("home", country="DE").is_up()
    make("home").is_up()
    assert network.countries == ["DE"]
    monkeypatch.delattr(network, "country")
    make("home", country="DE").is_up()


def test_wifi_that_was_switched_off_is_switched_on_again(make, clock):
    wifi = make("home")
    wifi.is_up()
    wifi.wlan.is_active = False
    clock.sleep_ms(5000)
    wifi.is_up()
    assert wifi.wlan.is_active


def test_wifi_whose_power_is_refused_joins_and_sets_it_later(make, clock, monkeypatch):
    wifi = make("home", pm=7)
    wifi.wlan.is_in_reach = True
    with monkeypatch.context() as patch:
        patch.setattr(network.WLAN, "config", Mock(side_effect=OSError("not yet")))
        assert wifi.is_up(100)
    wifi.wlan.is_up = False
    clock.sleep_ms(5000)
    wifi.is_up()
    assert wifi.wlan.calls[-1] == {"pm": 7}


@pytest.mark.parametrize("error", [OSError, RuntimeError])
def test_wifi_whose_radio_does_not_start_is_tried_again(make, clock, monkeypatch, error):
    """RuntimeError: how esp32 says that it has no memory, and all else that it has no name for."""
    wifi = make("home")
    wifi.wlan.is_in_reach = True
    with monkeypatch.context() as patch:
        patch.setattr(network.WLAN, "active", Mock(side_effect=error("no memory")))
        assert not wifi.is_up(4000)
    assert wifi.is_up(1100)


def test_wifi_whose_port_refuses_to_join_says_why(wifi, clock, monkeypatch):
    """How esp32 takes a password of less than eight characters."""
    refuse = Mock(side_effect=OSError("Wifi Invalid Password"))
    with monkeypatch.context() as patch:
        patch.setattr(network.WLAN, "connect", refuse)
        assert not wifi.is_up(5000)
    assert wifi.why == "home: Wifi Invalid Password"
    assert not wifi.is_up(40_000)
    assert wifi.why == "home: no answer"


def test_wifi_signal_is_none_without_a_link(make):
    wifi = make("home")
    assert wifi.rssi() is None
    wifi.wlan.dbm = 0  # as rp2 has it then
    assert wifi.rssi() is None
    wifi.wlan.dbm = -61
    assert wifi.rssi() == -61


def test_wifi_in_asyncio_is_kept_up_by_a_task(make, monkeypatch):
    wifi = make("home")
    changes = []
    wifi.on_change = changes.append
    naps = []

    async def nap(ms):
        naps.append(ms)
        wifi.wlan.is_up = len(naps) != 2
        if len(naps) == 4:
            raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep_ms", nap, raising=False)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(wifi.keep())
    assert changes == [True, False, True]
    assert naps == [500] * 4
