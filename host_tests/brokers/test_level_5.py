"""Level 5 with a real mosquitto: what it says and passes on."""

from umqtt31 import MQTTClient
from umqtt31.properties import encode
from umqtt31.v5 import NO_LOCAL


def new_client(broker, name):
    return MQTTClient(name, "127.0.0.1", broker.port, level=5)


def poll_until(client, is_true):
    for _ in range(500):
        if is_true():
            return
        client.poll(10)
    raise AssertionError("it never came")


def test_messages_bring_their_properties_at_each_qos(shared_mosquitto):
    client = new_client(shared_mosquitto, b"v5-properties")
    client.v5.topic_aliases = 1
    seen = []

    def on_message(message):
        seen.append(
            (
                message.qos,
                message.topic,
                message.payload,
                message.content_type,
                message.correlation_data,
                message.user_property,
                message.subscription_identifier,
                0 < message.message_expiry_interval <= 60,
            )
        )

    client.on_message = on_message
    client.connect()
    assert client.subscribe(b"v5/properties", 2, encode(subscription_identifier=7)) == [2]
    given = encode(content_type="c", correlation_data=b"\x00", user_property=(("k", "v"),))
    for qos in (0, 1, 2):
        client.publish(b"v5/properties", b"x", qos=qos, max_age=60, properties=given)
    poll_until(client, lambda: len(seen) == 3)
    assert client.flush(5000)
    client.disconnect()
    pairs = [(b"k", b"v")]
    assert sorted(seen) == [
        (qos, b"v5/properties", b"x", b"c", b"\x00", pairs, [7], True) for qos in (0, 1, 2)
    ]


def test_session_that_is_kept_goes_on_and_an_expired_one_does_not(shared_mosquitto):
    client = new_client(shared_mosquitto, b"v5-session")
    assert client.connect(False) is False
    client.subscribe(b"v5/session", 1 | NO_LOCAL)
    client.publish(b"v5/session", b"own", qos=1)
    assert client.flush(5000)
    client.disconnect()
    assert client.connect(False) is True
    client.v5.leave_properties = encode(session_expiry_interval=0)
    client.disconnect()
    assert client.connect(False) is False
    assert client.stats.received == 0
    client.disconnect()


def test_client_without_an_id_keeps_the_one_that_it_got(shared_mosquitto):
    client = new_client(shared_mosquitto, b"")
    assert client.connect(False) is False
    name = client.v5.assigned_client_id
    client.disconnect()
    assert name and client.connect(False) is True
    assert client.v5.assigned_client_id == name
    client.disconnect()
