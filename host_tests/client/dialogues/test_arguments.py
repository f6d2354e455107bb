"""Wrong arguments: ValueError or TypeError before anything is sent or stored."""

from host_tests.client.dialogue import Dialogue, error_of
from umqtt31 import MQTTClient

BAD_OPTIONS = [
    ("level", 2),
    ("level", 6),
    ("level", None),
    ("buffer_size", 15),
    ("buffer_size", 65536),
    ("max_inflight", 0),
    ("max_inflight", 65536),
    ("max_mqueue_len", -1),
    ("max_mqueue_len", 65535),
    ("max_awaiting_rel", 0),
    ("retry_interval", -1),
    ("retry_interval", 3601),
    ("await_rel_timeout", 0),
    ("connect_timeout", 0),
    ("overflow", "drop"),
    ("overflow", None),
    ("keepalive", 65536),
]


def test_options_out_of_range_are_refused_by_name():
    for name, value in BAD_OPTIONS:
        error = error_of(MQTTClient, "dev", "broker", **{name: value})
        assert isinstance(error, (ValueError, TypeError)), (name, value)
        assert isinstance(error, TypeError) or name in str(error), (name, value, error)


def test_options_at_their_limits_are_taken():
    for options in (
        {"buffer_size": 16},
        {"max_inflight": 1, "max_mqueue_len": 0},
        {"retry_interval": 0},
        {"retry_interval": 3600},
        {"await_rel_timeout": 1, "connect_timeout": 1, "max_awaiting_rel": 1},
        {"keepalive": 0},
        {"keepalive": 65535},
        {"max_subscriptions": 0},
    ):
        MQTTClient("dev", "broker", **options)


def test_client_id_of_another_type_is_refused():
    for bad in (None, 5, ["dev"]):
        assert isinstance(error_of(MQTTClient, bad, "broker"), (TypeError, ValueError))


def test_will_without_keepalive_is_refused():
    """31-3.1-WILL: the broker may never notice a loss, so no will would ever come."""
    d = Dialogue(is_connected=False, keepalive=0)
    assert isinstance(error_of(d.client.set_last_will, "w", "gone"), ValueError)


def test_max_age_out_of_range_is_refused():
    d = Dialogue()
    for bad in (-1, 86401):
        assert isinstance(error_of(d.publish, max_age=bad), ValueError)
    d.c2b()
    assert d.client.inflight == 0


def test_stats_can_be_read_by_name_and_by_attribute():
    d = Dialogue()
    d.publish()
    assert d.client.stats["sent"] == d.client.stats.sent == 1
