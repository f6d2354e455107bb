"""What a program for mqtt_as counts on, as docs/guides/moving.md says to write it."""

import asyncio

import umqtt31.aio as aio
from host_tests.client import wire
from host_tests.client.aio_dialogue import Desk, on_desk

# As mqtt_as has them, with its own values where a program sets none.
MQTT_AS_CONFIG = {
    "client_id": b"dev",
    "server": "broker",
    "port": 0,
    "user": "name",
    "password": "secret",
    "keepalive": 30,
    "ssl": False,
    "response_time": 7,
    "will": ("gone", "dev", True, 1),
}


@on_desk(level=4)
async def test_config_of_mqtt_as_makes_the_client_that_its_table_says(desk):
    config = MQTT_AS_CONFIG
    client = aio.MQTTClient(
        config["client_id"],
        config["server"],
        config["port"],
        config["user"] or None,
        config["password"] if config["user"] else None,
        config["keepalive"],
        config["ssl"],
        level=4,
        connect_timeout=config["response_time"],
    )
    client.set_last_will(*config["will"])
    await client.connect(True, desk.open)
    expected = wire.connect(
        b"dev",
        2 | 0xC0 | 4 | 1 << 3 | 1 << 5,
        30,
        b"gone",
        b"dev",
        b"name",
        b"secret",
        level=4,
    )
    assert desk.streams[0].take() == expected


def test_disconnect_behind_the_loop_says_goodbye_and_closes():
    """mqtt_as: `finally: client.close()`, behind a loop that ended with what main() raised."""
    desk = Desk(level=4)
    stream = desk.streams[0]

    async def main(desk):
        await desk.client.connect(True, desk.open)
        stream.take()
        raise KeyboardInterrupt

    try:
        asyncio.run(main(desk))
    except KeyboardInterrupt:
        asyncio.run(desk.client.disconnect())
    assert stream.take() == b"\xe0\x00" and stream.is_closed
