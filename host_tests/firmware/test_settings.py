"""Settings: every error names the key, the value found and the values allowed."""

import json

import pytest

from assemble import _SENSORS as MADE
from assemble import make_client
from host_tests.firmware.node_bench import fake_updates
from node import topic_root
from reading import Reading
from schedule import LONGEST_MS, SHORTEST_MS
from settings import KEYS, SENSORS, SettingsError, allowed, complete, load, problems

GOOD = {"client_id": "node-7", "server": "broker.example"}


def test_settings_with_only_what_is_required_get_every_default():
    assert problems(GOOD) == []
    found = complete(GOOD)
    assert found["client_id"] == "node-7"
    assert {name: found[name] for name in KEYS if KEYS[name][0] is not None} == {
        name: default for name, (default, *_) in KEYS.items() if default is not None
    }


WRONG = {
    "client_id": ("", "x" * 24, "a/b", "a+", 7), "port": (65536, "1883", True),
    "prefix": ("a//b", "/a", "a/#"), "site": ("a/b",), "interval_ms": (9, 1.5, 86400001),
    "streams": ([], [0, 3], [True], 1, [1] * 9), "keepalive": (0,), "max_inflight": (0,),
    "max_mqueue_len": (0,), "buffer_size": (127,), "store": ("flash",), "power_save": ("on", True),
    "tls": (None, "certificates/ca.pem", "main.py", "node.mpy", "settings.json"), "level": (2, 6),
    "server": ("", "10.0.0.1:1883", "mqtt://broker", "my broker", "[::1]:1883", 7),
    "time_topic": ("sensors/#", "sensors//time"),
    "sensors": ("bme680", "ds18b20", "battery:x", "battery:1:2:3", "battery:26:0", "sht3x:1",
                ["sht3x"], "ds18b20:²"),
    "ntp_server": ("pool:²", "pool:65536", "pool:ntp", ":123"),
}  # fmt: skip


@pytest.mark.parametrize(("key", "value"), [(key, one) for key in WRONG for one in WRONG[key]])
def test_settings_with_a_wrong_value_name_key_value_and_allowed(key, value):
    shown = json.dumps(value)
    assert problems(GOOD | {key: value}) == [f"{key} is {shown}; allowed: {allowed(key)}"]


def test_settings_say_what_a_server_and_a_file_are():
    assert "without a port: port is a key" in allowed("server")
    assert "name of a file" in allowed("tls_key")


@pytest.mark.parametrize("server", ["::1", "fe80::1%wlan0", "fd00::7:1", "127.0.0.1", "my_broker"])
def test_settings_allow_names_and_addresses_of_servers(server):
    assert problems(GOOD | {"server": server}) == []


def test_settings_allow_each_sensor_that_the_firmware_has():
    assert SENSORS.keys() == MADE.keys()
    assert problems(GOOD | {"sensors": "bme280 sht3x ds18b20:4 battery:35 battery:36:200"}) == []


def test_settings_allow_the_intervals_that_a_command_may_set():
    assert KEYS["interval_ms"][2:] == (SHORTEST_MS, LONGEST_MS)


def test_settings_without_required_keys_name_them():
    assert [text.split(";")[0] for text in problems({})] == [
        "client_id is missing",
        "server is missing",
    ]


@pytest.mark.parametrize("key", ["password", "wifi_password"])
def test_settings_with_a_wrong_secret_do_not_show_it(key):
    (text,) = problems(GOOD | {key: "s3cret" * 30})
    assert text.startswith(f"{key} is (not shown); allowed: ")
    assert "s3cret" not in text


def test_settings_with_a_secret_that_is_a_number_miss_its_quotes():
    (text,) = problems(GOOD | {"wifi_password": 12345678})
    assert text == "wifi_password is not in quotes; allowed: 0 to 64 characters"


@pytest.mark.parametrize(
    ("extra", "text"),
    [
        ({"intervall": 5}, "intervall is no known key; known: awake_ms, buffer_size, "),
        ({"password": "x"}, "user is missing"),
        ({"commands": "signed"}, "update_key is missing; signed commands need it"),
        ({"sleep_above_ms": 60000}, 'store is "ram"; deep sleep forgets it'),
        ({"discovery": "ha", "buffer_size": 768}, 'format is "binary"; discovery is for "json"'),
        ({"tls": "ca.pem", "tls_cert": "me.crt"}, "tls_cert and tls_key belong together"),
        ({"tls": "ca.pem", "tls_key": "me.key"}, "tls_cert and tls_key belong together"),
        ({"tls_cert": "me.crt", "tls_key": "me.key"}, "tls is missing"),
        ({"wifi_password": "short"}, "wifi_password is too short; allowed: 8 to 63"),
        ({"wifi_password": "g" * 64}, "wifi_password is too long; allowed: up to 63 bytes, or 64"),
        ({"client_id": "ä" * 12}, "client_id is too long; allowed: up to 23 bytes"),
        ({"wifi_ssid": "ä" * 17}, "wifi_ssid is too long; allowed: up to 32 bytes"),
        ({"wifi_password": "ä" * 32}, "wifi_password is too long; allowed: up to 63 bytes"),
        ({"buffer_size": 128, "prefix": "p" * 60}, "buffer_size is 128; these names need at"),
        ({"user": "u" * 128, "password": "p" * 128}, "buffer_size is 256; these names need at"),
    ],
)
def test_settings_that_are_unknown_or_clash_say_which_key_to_change(extra, text):
    (found,) = problems(GOOD | extra)
    assert found.startswith(text)


@pytest.mark.parametrize("level", [3, 4, 5])
def test_smallest_buffer_that_is_allowed_takes_the_largest_reading(level):
    """A health report of nine values was too large for it, and so for ever due."""
    wanted = GOOD | {"level": level, "prefix": "p" * 64, "buffer_size": 128}
    (told,) = problems(wanted)
    config = complete(wanted | {"buffer_size": int(told.split()[-1])})
    assert problems(config) == []
    reading = Reading("node-7", 0x0100, 1)
    while reading.add(128, 0):
        pass
    client = make_client(config, None)
    assert client.publish(topic_root(config) + b"/reading/7", reading.number(7, 1, 1), qos=1)


@pytest.mark.parametrize(
    "less",
    [
        {"time_topic": "t" * 25},
        {"time_topic": "", "prefix": "p" * 64, "client_id": "n" * 17},
        {"update_key": ""},
        {"level": 5},
    ],
)
def test_settings_ask_for_no_byte_more_than_the_filters_that_are_sent(less):
    names = {"prefix": "p" * 61, "site": "s" * 32, "time_topic": "t" * 26, "update_key": "0" * 32}
    assert problems(GOOD | names) == ["buffer_size is 256; these names need at least 257"]
    assert problems(GOOD | names | less) == []


@pytest.mark.parametrize("level", [3, 4, 5])
@pytest.mark.parametrize(
    ("more", "qos"),
    [
        ({}, [2]),
        ({"time_topic": "t" * 64}, [2, 0]),
        ({"update_key": "00" * 32}, [2, 1]),
        ({"update_key": "00" * 32, "time_topic": "t" * 64, "site": "s" * 32}, [2, 1, 0]),
    ],
)
def test_smallest_buffer_that_is_allowed_takes_all_filters(
    make_bench, shared_mosquitto, level, more, qos
):
    """Below level 5 one packet has all of them: with long names the node never greeted."""
    place = {"server": shared_mosquitto.host, "port": shared_mosquitto.port, "level": level}
    wanted = GOOD | place | {"prefix": "p" * 64, "buffer_size": 128} | more
    (told,) = problems(wanted)
    config = complete(wanted | {"buffer_size": int(told.split()[-1])})
    assert problems(config) == []
    bench = make_bench({"updates": fake_updates()} if "update_key" in more else None, **config)
    bench.run_ms(1500)
    client = make_client(config, None)
    client.connect()
    granted = [client.subscribe(*call[1:]) for call in bench.calls("subscribe")]
    client.disconnect()
    assert granted == [[one] for one in qos]


def test_settings_allow_the_key_of_a_wifi_as_64_hex_digits():
    assert problems(GOOD | {"wifi_password": "0123abCD" * 8}) == []


def test_settings_on_a_wifi_board_need_a_network_name():
    assert problems(GOOD, has_wifi=True)[0].startswith("wifi_ssid is missing")
    assert problems(GOOD | {"wifi_ssid": "home"}, has_wifi=True) == []


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "not found; write one with at least client_id and server"),
        ("{", "not valid JSON"),
        ("[]", "holds no JSON object"),
        ("{}", "client_id is missing"),
    ],
)
def test_settings_file_that_cannot_be_used_is_named(tmp_path, content, text):
    path = tmp_path / "settings.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SettingsError, match=text) as error:
        load(str(path))
    assert str(error.value).startswith(str(path) + ": ")
    assert "\n" not in str(error.value)


def test_settings_file_that_is_good_is_complete(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(GOOD | {"streams": [0, 1, 2]}))
    found = load(str(path))
    assert found["streams"] == [0, 1, 2]
    assert set(found) == set(KEYS)
