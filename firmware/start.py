"""Puts the node together from its settings and its board, and runs it.

The only module that knows both the hardware and the logic.  `board` is the module
`board.py` of this board; docs/firmware.md lists what it must define.
"""

import json
import time

from led import Led
from node import Node, reason
from settings import SettingsError, load
from state import State
from umqtt31 import MQTTClient, MQTTError
from wifi import HostNetwork, WiFi

# As many QoS 2 messages as a broker may have in flight to one client (mosquitto: 20).
_MAX_AWAITING_REL = 20
# Below the shortest watchdog (RP2040: 8.3 s).
_CONNECT_TIMEOUT_S = 5


def start(board):
    """Run the node until it resets itself; a node that cannot start says why."""
    try:
        config = load(has_wifi=board.NETWORK == "wifi")
        node = _build(config, board)
    except (SettingsError, MQTTError) as error:
        print("cannot start:", reason(error))
        board.halt()
        return
    # The texts of errors; else the first error loads them, into a heap in use.
    import umqtt31.codes  # noqa: F401

    node.run()
    print("report", json.dumps(node.report()))
    board.reset()


def _build(config, board):
    state = State()
    client = _client(config, board)
    state.begin_boot()
    print("boot", state.boot, "of", config["client_id"], "on", board.NAME)
    return Node(
        config,
        state,
        client,
        board.sensors(),
        _network(config, board),
        _led(board),
        _watchdog(board),
    )


def _client(config, board):
    return MQTTClient(
        config["client_id"],
        config["server"],
        config["port"],
        config["user"] or None,
        config["password"] or None,
        config["keepalive"],
        _tls(config["tls"]) if config["tls"] else None,
        buffer_size=config["buffer_size"],
        store=board.journal() if config["store"] == "journal" else None,
        max_inflight=config["max_inflight"],
        max_mqueue_len=config["max_mqueue_len"],
        max_awaiting_rel=_MAX_AWAITING_REL,
        max_subscriptions=1,
        connect_timeout=_CONNECT_TIMEOUT_S,
    )


def _tls(ca_file):
    import tls

    context = tls.SSLContext(tls.PROTOCOL_TLS_CLIENT)
    context.verify_mode = tls.CERT_REQUIRED
    try:
        with open(ca_file, "rb") as file:
            context.load_verify_locations(file.read())
    except (OSError, ValueError):
        raise SettingsError("tls: cannot read CA certificates from " + ca_file) from None
    return context


def _network(config, board):
    if board.NETWORK != "wifi":
        return HostNetwork()
    import network

    set_clock = None
    if config["tls"]:
        # Certificates have dates, and the board has no battery for its clock.
        from ntptime import settime as set_clock
    wlan = network.WLAN(network.STA_IF)
    return WiFi(wlan, config["wifi_ssid"], config["wifi_password"], time, set_clock)


def _led(board):
    if board.LED_PIN is None:
        return Led(None)
    from machine import Pin

    return Led(Pin(board.LED_PIN, Pin.OUT), board.LED_ON)


def _watchdog(board):
    if board.WATCHDOG_MS is None:
        return None
    from machine import WDT

    return WDT(timeout=board.WATCHDOG_MS)
