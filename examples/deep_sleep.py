"""Deep sleep with the journal: wake, publish, flush, sleep.

Every wake starts this program anew.  What could not be sent, for want of network or
broker, stays on flash and goes out at a later wake, before what is newer.
"""

import machine

from umqtt31 import FileBlockDevice, Journal, MQTTClient

SERVER = "broker.example"
PORT = 1883
SLEEP_MS = 600_000
AWAKE_MS = 5_000


def count_wake():
    # A file outlives deep sleep on every board.
    try:
        with open("wakes.txt") as file:
            wakes = int(file.read())
    except (OSError, ValueError):
        wakes = 0
    with open("wakes.txt", "w") as file:
        file.write(str(wakes + 1))
    return wakes + 1


def wake():
    # Where flash is to spare: esp32.Partition, or rp2.Flash(start=…, len=…).
    journal = Journal(FileBlockDevice("journal.bin", 16))
    client = MQTTClient(
        "meter-1",
        SERVER,
        PORT,
        level=4,
        store=journal,
        max_mqueue_len=100,
        overflow="drop_oldest",  # after days without a broker
    )
    client.publish(b"home/meter-1/wake", b"%d" % count_wake(), qos=1)  # on flash from here on
    client.connect(clean_session=False)
    if client.flush(AWAKE_MS):
        print("all acknowledged")
    client.disconnect()


try:
    wake()
except OSError as error:  # MQTTError is one; flash may fail, too
    print("kept for the next wake:", error)
machine.deepsleep(SLEEP_MS)  # in any case, or the battery is empty by tomorrow
