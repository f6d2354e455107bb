"""The asyncio front with a real mosquitto, under CPython and every real MicroPython.

Its dialogues with scripted streams are in `dialogues/fronts/aio/`.
"""

import asyncio
import functools
import gc

import pytest

from host_tests.client import aio_desk
from umqtt31 import aio

every_level = pytest.mark.parametrize("level", [3, 4, 5])


@pytest.fixture
def play(desk, shared_mosquitto):
    """play(NAME, ...): a function of aio_desk.py."""
    return functools.partial(desk, aio_desk, "run", shared_mosquitto.port)


@every_level
def test_messages_pass_both_ways_while_bodies_publish(play, level):
    qos1, qos2, told, is_connected = play("pass_messages", level)
    assert qos1 == qos2 == [b"%d" % k for k in range(60)]
    assert told == ([1, 2], 240, 0, 0)
    assert not is_connected


def test_messages_that_bodies_refuse_come_once_and_the_next_ones_too(play):
    payloads, connections = play("refuse", 5)
    assert sorted(payloads[:20]) == sorted(b"%d" % k for k in range(20))
    assert payloads[20:] == [b"last"]
    assert connections == 1


@every_level
def test_two_tasks_share_the_messages_of_one_client_by_filter(play, level):
    odd, even = play("share", level)
    assert odd == [b"%d" % k for k in range(1, 40, 2)]
    assert even == [b"%d" % k for k in range(0, 40, 2)]


@every_level
def test_lost_link_ends_no_task_and_loses_nothing(play, level):
    assert play("lose", level) == ([b"kept"], 1)


class CollectingLoop(asyncio.SelectorEventLoop):
    """Once told so, collects garbage whenever somebody is woken."""

    collects = False

    def call_soon(self, *args, **options):
        """As asyncio's."""
        if self.collects:
            gc.collect()
        return super().call_soon(*args, **options)


def test_cancelled_loop_that_is_garbage_disturbs_nobody():
    async def listen(client):
        messages = client.messages()
        ring = [messages]
        ring.append(ring)  # so that the collector frees it, at some time
        async for _ in messages:
            pass

    async def main():
        client = aio.MQTTClient(b"c", "127.0.0.1")
        cancelled, listening = (asyncio.create_task(listen(client)) for _ in range(2))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        del cancelled
        asyncio.get_running_loop().collects = True
        await client.disconnect()
        await listening

    with asyncio.Runner(loop_factory=CollectingLoop) as runner:
        gc.disable()
        runner.run(main())
        gc.enable()
