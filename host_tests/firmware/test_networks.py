"""The node's networks beside umqtt31.wifi: one face for Wi-Fi and a cable."""

import sys
from unittest.mock import Mock

import pytest

from ethernet import Ethernet
from host_tests.standin import wlan as network


@pytest.mark.parametrize(("setting", "pm"), [("none", 16), ("performance", 17), ("powersave", 18)])
def test_wifi_gets_login_and_power_of_the_settings(monkeypatch, setting, pm):
    monkeypatch.setitem(sys.modules, "network", network)
    monkeypatch.delitem(sys.modules, "umqtt31.wifi", raising=False)
    monkeypatch.delitem(sys.modules, "wifi", raising=False)
    from wifi import WiFi

    wifi = WiFi("home", "password", setting)
    assert not wifi.is_up()
    assert wifi.wlan.calls == ["active", "disconnect", ("home", "password"), {"pm": pm}]
    assert (wifi.why, wifi.rssi(), wifi.find_dns()) == (None, None, "10.0.0.53")


def test_ethernet_is_up_with_link_and_address_and_else_says_what_to_check():
    lan = network.WLAN(network.STA_IF)
    ethernet = Ethernet(lan)
    assert not ethernet.is_up()
    assert "check cable" in ethernet.why
    lan.is_up = True
    assert ethernet.is_up()
    assert (ethernet.why, ethernet.rssi(), ethernet.find_dns()) == (None, None, "10.0.0.53")
    assert lan.calls == ["active"]


def test_ethernet_whose_chip_fails_says_why_and_is_tried_again():
    """The node reset every five seconds, and took no sample meanwhile."""
    lan = Mock(**{"active.side_effect": [OSError("no link"), True], "isconnected": lambda: True})
    ethernet = Ethernet(lan)
    assert not ethernet.is_up()
    assert ethernet.why == "no link"
    assert ethernet.is_up()
