"""Tells boards what time it is, over their broker: for those that reach no NTP server.

The time is retained, so that a board hears it as soon as it connects, and is taken away
again when nobody is there to renew it: an old time is worse than none.
"""

import contextlib
import threading
import time

from .errors import BoardError


def publish_time(client, topic, every_s, stop=None):
    """Publish seconds since 1970 on `topic` every `every_s`, until the Event `stop` is set.

    `client` is a connected paho client whose will is an empty retained message.  BoardError
    when the broker refuses.
    """
    stop = stop or threading.Event()
    refusals: list[str] = []

    def say(client, *_):
        client.publish(topic, str(int(time.time())), retain=True)

    def begin(client, data, flags, reason, properties):
        if reason.is_failure:
            refusals.append(str(reason))
            stop.set()
        else:
            say(client)

    client.on_connect = begin
    say(client)
    client.loop_start()
    try:
        while not stop.wait(every_s):
            say(client)
        if refusals:
            raise BoardError(f"the broker refuses: {refusals[0]}")
    finally:
        if not refusals:
            with contextlib.suppress(RuntimeError):  # no connection: the will removes it
                client.publish(topic, b"", qos=1, retain=True).wait_for_publish(5)
        client.disconnect()
        client.loop_stop()
