"""What a program for mqtt_as counts on, as docs/guides/moving.md says to write it."""

import asyncio

import umqtt31.aio as aio
from host_tests.client import wire
from host_tests.client.aio_dialogue import Desk, on_desk


@on_desk(level=4)
async def test_config_of_mqtt_as_makes_the_client_that_its_table_says(desk):
    client = aio.MQTTClient(
        b"dev", "broker", 0, "name", "secret", 30, False, level=4, connect_timeout=7
    )
    client.set_last_will("gone", "dev", True, 1)
    await client.connect(True, desk.open)
    fields = [b"gone", b"dev", b"name", b"secret"]
    assert desk.streams[0].take() == wire.connect(
        b"dev", 2 | 0xC0 | 4 | 8 | 32, 30, *fields, level=4
    )


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
