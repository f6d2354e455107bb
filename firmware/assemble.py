"""Makes the node from its settings and its board.

The only module that knows both the hardware and the logic.  `start` forgets it when the
node is there: nothing in here may be referred to by what runs.
"""

import gc
import time

from state import DONE, WELL, State
from umqtt31 import MQTTClient, MQTTError

# As many QoS 2 messages as a broker may have in flight to one client (mosquitto: 20).
_MAX_AWAITING_REL = 20
# Below the shortest watchdog (RP2040: 8.3 s).
_CONNECT_TIMEOUT_S = 5
_DEEP_SLEEP = 4
# What a chunk adds to its data: PUBLISH header, topic length, packet id; kind, id, offset.
_CHUNK_OVERHEAD = 5 + 2 + 2 + 13

# Bytes of a reading in the client's queue: header and packet id of PUBLISH, the queue's own
# bytes, the topic below the root, the largest envelope.
_READING_BYTES = 5 + 2 + 2 + 5 + len("/reading/0") + 90
_JSON_BYTES = 300  # more, usually
_MOST_QUEUE_BYTES = 1 << 18

# The port finds names with these ends without a name server.
_OWN_NAMES = ("local", "localhost")


def assemble(config, board):
    """-> the node, or None when it cannot be; why is printed."""
    try:
        return _build(config, board)
    except (ValueError, MQTTError) as error:
        print("cannot start:", error)
        return None


def _build(config, board):
    state = State()
    store = _store(config, board, state)
    # Garbage between objects that stay would leave gaps too small for what comes later.
    gc.collect()
    client = make_client(config, store)
    if store and state.journal == DONE and not store.has_failed:
        state.keep_journal(WELL)  # the failure was told; what the journal takes now was not sent
    cause = board.reset_cause()
    try:
        if cause != _DEEP_SLEEP or not state.asleep:
            state.begin_boot()
        else:
            state.save_when_due(0)
    except OSError as error:
        print("flash:", error.args[-1])
    print("boot", state.boot, "of", config["client_id"], "on", board.NAME)
    # Loaded only now, as the client needs most heap while it opens the journal.
    gc.collect()
    from node import Node
    from timekeeper import Timekeeper

    network = _network(config, board)
    sensors = sensors_of(config["sensors"], board)
    watchdog = _watchdog(board)  # last: if a step before it raised, nobody would feed it
    gc.collect()
    return Node(
        config, state, client, sensors, network, _led(board), watchdog,
        times=Timekeeper(time, _ntp(config, board, network), board.now(), board.set_clock),
        store=store, cause=cause, updates=_updates(config, board, watchdog),
        names=_names(config, board, network, client),
    )  # fmt: skip


def make_client(config, store):
    """The client that the settings ask for; it opens the store.  ValueError, MQTTError."""
    level = config["level"]
    make = MQTTClient
    if level == 5:
        from umqtt31.v5 import MQTTClient as make
    return make(
        config["client_id"], config["server"], config["port"], config["user"] or None,
        config["password"] or None, config["keepalive"], _ssl(config),
        level=level, buffer_size=config["buffer_size"], store=store,
        queue_bytes=_queue_bytes(config, store), max_inflight=config["max_inflight"],
        max_mqueue_len=config["max_mqueue_len"], max_awaiting_rel=_MAX_AWAITING_REL,
        connect_timeout=_CONNECT_TIMEOUT_S,
    )  # fmt: skip


def sensors_of(text, board):
    """The board's sensors, and those that the setting `sensors` names -> list.  ValueError."""
    found = board.sensors()
    for word in text.split():
        try:
            found.append(_sensor(word, board))
        except Exception as error:  # ports say in many ways that there is no such pin
            raise ValueError("sensors: %s: %s" % (word, error))
    return found


def _sensor(word, board):
    name, *numbers = word.split(":")
    numbers = [int(one) for one in numbers]
    kind, connect = _SENSORS[name]
    make = getattr(getattr(__import__("sensors." + name), name), kind)
    return make(connect(board, *numbers[:1]), *numbers[1:])


def _i2c(board):
    return board.i2c()


def _one_wire(board, pin):
    from ds18x20 import DS18X20
    from machine import Pin
    from onewire import OneWire

    return DS18X20(OneWire(Pin(pin)))


def _adc(board, pin):
    from machine import ADC, Pin

    return ADC(Pin(pin))


# Module, which is the name in the settings: (class, function that connects it).
_SENSORS = {
    "bme280": ("BME280", _i2c),
    "sht3x": ("SHT3x", _i2c),
    "ds18b20": ("DS18B20", _one_wire),
    "battery": ("Battery", _adc),
}


def _queue_bytes(config, store):
    # RAM for as many readings as the settings allow.  With a store, only the window is in RAM.
    room = config["max_inflight"] + (0 if store else config["max_mqueue_len"])
    topic = "//".join((config["prefix"], config["site"], config["client_id"]))
    reading_bytes = _READING_BYTES + (_JSON_BYTES if config["format"] == "json" else 0)
    return min(room * (reading_bytes + len(topic.encode())), _MOST_QUEUE_BYTES)


def _store(config, board, state):
    if config["store"] != "journal":
        return None
    from fallback import Fallback

    return Fallback(board.journal(), state.journal == DONE)


def _ssl(config):
    keys = {"ca": "tls", "cert": "tls_cert", "key": "tls_key"}
    return {name: config[key] for name, key in keys.items() if config[key]} or None


def _network(config, board):
    # Only what this board has is loaded.
    if board.NETWORK == "host":
        return board.HostNetwork()
    if board.NETWORK == "ethernet":
        from ethernet import Ethernet

        return Ethernet(board.ethernet())
    from wifi import WiFi

    return WiFi(config["wifi_ssid"], config["wifi_password"], config["power_save"])


def _ntp(config, board, network):
    if board.NETWORK == "host" or not config["ntp_server"]:
        return None  # the host knows the time, or the settings name no server
    from asking import NTP

    return NTP(config["ntp_server"], network.find_dns, time)


def _names(config, board, network, client):
    from asking import Names, is_address

    name = config["server"]
    if board.NETWORK == "host" or is_address(name) or name.split(".")[-1] in _OWN_NAMES:
        return None  # no name to look up, or the port finds it
    names = Names(name, network.find_dns, time)
    client.look_up = names.look_up
    return names


def _updates(config, board, watchdog):
    if not config["update_key"]:
        return None
    gc.collect()
    from node import topic_root
    from ota import Updates

    topic_bytes = len(topic_root(config)) + len("/update")
    most_bytes = config["buffer_size"] - topic_bytes - _CHUNK_OVERHEAD
    feed = watchdog.feed if watchdog else int  # int() does nothing
    return Updates(config["update_key"], board.NAME, most_bytes, feed, print)


def _led(board):
    from node import Led

    if board.LED_PIN is None:
        return Led(None)
    from machine import Pin

    return Led(Pin(board.LED_PIN, Pin.OUT), board.LED_ON)


def _watchdog(board):
    if board.WATCHDOG_MS is None:
        return None
    from machine import WDT

    return WDT(timeout=board.WATCHDOG_MS)
