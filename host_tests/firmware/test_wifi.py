"""Wi-Fi: joined again with growing pauses, and left alone while the link is up."""

import pytest

from wifi import HostNetwork, WiFi


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


@pytest.fixture
def wlan():
    return FakeWLAN()


def test_wifi_while_up_is_never_touched(wlan, clock):
    wifi = WiFi(wlan, "home", "password", clock)
    wlan.is_up = True
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


def test_wifi_for_tls_counts_as_up_only_with_the_clock_set(wlan, clock):
    answers = [OSError("no answer"), None]

    def set_clock():
        answer = answers.pop(0)
        if answer:
            raise answer

    wifi = WiFi(wlan, "home", "password", clock, set_clock)
    wlan.is_up = True
    assert [wifi.is_up() for _ in range(3)] == [False, True, True]
    assert answers == []


def test_host_network_is_always_up():
    assert HostNetwork().is_up()
