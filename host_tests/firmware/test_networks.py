"""Networks: joined again with growing pauses, left alone while up, and why they are not."""

import pytest

from ethernet import Ethernet
from host import HostNetwork
from wifi import WiFi, reasons


class FakeWLAN:
    def __init__(self):
        self.is_up = False
        self.calls = []

    def active(self, on):
        self.calls.append("active")

    def isconnected(self):
        return self.is_up

    def connect(self, *args):
        self.calls.append(args)
        raise OSError("already connecting")

    def disconnect(self):
        self.calls.append("disconnect")

    def status(self, *what):
        return 0


@pytest.fixture
def wlan():
    return FakeWLAN()


def test_wifi_while_up_is_never_touched(wlan, clock):
    wifi = WiFi(wlan, "home", "password", clock)
    wlan.is_up = True
    assert wifi.is_up()
    wlan.calls.clear()
    for _ in range(100):
        assert wifi.is_up()
        clock.sleep_ms(60000)
    assert wlan.calls == []


def test_wifi_while_down_joins_with_growing_pauses(wlan, clock):
    wifi = WiFi(wlan, "home", "password", clock)
    tries = []
    for _ in range(240):
        before = len(wlan.calls)
        assert not wifi.is_up()
        if len(wlan.calls) > before:
            tries.append(clock.now_ms)
        clock.sleep_ms(1000)
    assert tries == [0, 5000, 15000, 35000, 75000, 135000, 195000]
    assert ("home", "password") in wlan.calls


def test_wifi_without_password_joins_an_open_network(wlan, clock):
    WiFi(wlan, "cafe", "", clock).is_up()
    assert wlan.calls[-1] == ("cafe",)


def test_wifi_back_after_a_loss_starts_with_the_short_pause(wlan, clock):
    wifi = WiFi(wlan, "home", "password", clock)
    for _ in range(4):
        wifi.is_up()
        clock.sleep_ms(60000)
    wlan.is_up = True
    assert wifi.is_up()
    wlan.is_up = False
    wlan.calls.clear()
    for _ in range(6):
        wifi.is_up()
        clock.sleep_ms(1000)
    assert wlan.calls == ["disconnect", ("home", "password")] * 2


class Codes:
    STAT_NO_AP_FOUND = 201
    STAT_WRONG_PASSWORD = 202
    STAT_CONNECT_FAIL = -1


@pytest.mark.parametrize(
    ("status", "rssi", "text"),
    [
        (202, 0, "wrong password for home"),
        (201, 0, "no network named home in reach"),
        (-1, 0, "home cannot be joined"),
        (2, 0, "home gives no address"),
        (1001, -60, "home gives no address"),
        (1001, 0, "home does not answer"),
    ],
)
def test_wifi_that_fails_says_why_in_words(wlan, clock, status, rssi, text):
    wlan.status = lambda *what: rssi if what else status
    wifi = WiFi(wlan, "home", "password", clock, reasons(Codes))
    assert not wifi.is_up()
    assert wifi.why is None  # it has only begun
    clock.sleep_ms(5000)
    assert not wifi.is_up()
    assert wifi.why == text
    wlan.is_up = True
    assert wifi.is_up()
    assert wifi.why is None


def test_wifi_radio_is_off_until_asked_and_gets_its_power_setting(wlan, clock):
    wlan.config = lambda **options: wlan.calls.append(options)
    wifi = WiFi(wlan, "home", "", clock, {}, power_save=7)
    assert wlan.calls == []
    wifi.is_up()
    assert wlan.calls[:2] == ["active", {"pm": 7}]


def test_ethernet_is_up_with_link_and_address_and_else_says_what_to_check():
    class Lan(FakeWLAN):
        def ifconfig(self):
            return "10.0.0.2", "255.0.0.0", "10.0.0.1", "10.0.0.53"

    lan = Lan()
    ethernet = Ethernet(lan)
    assert not ethernet.is_up()
    assert "check cable" in ethernet.why
    lan.is_up = True
    assert ethernet.is_up()
    assert (ethernet.why, ethernet.rssi(), ethernet.find_dns()) == (None, None, "10.0.0.53")
    assert lan.calls == ["active"]


def test_host_network_is_always_up():
    network = HostNetwork()
    assert network.is_up()
    assert (network.why, network.rssi(), network.find_dns()) == (None, None, None)
