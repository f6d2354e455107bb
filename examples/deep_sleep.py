"""Deep sleep with the journal: wake, publish, flush, sleep.

Every wake starts this program anew.  What could not be sent, for want of network or
broker, stays on flash and goes out at a later wake, before what is newer.
"""

import time

import machine

from umqtt31 import FileBlockDevice, Journal
from umqtt31.queueing import MQTTClient
from umqtt31.wifi import WiFi

SSID = "name"
PASSWORD = "password"
SERVER = "broker.example"  # an address, where the name server may be silent, too
PORT = 1883
SLEEP_MS = 600_000
AWAKE_MS = 10_000  # at most, whoever is silent

start = time.ticks_ms()


def left_ms():
    return max(AWAKE_MS - time.ticks_diff(time.ticks_ms(), start), 0)


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


def connect(client):
    # One try: a broker that refuses is asked at the next wake.
    while not client.reconnect(50) and not client.last_error and left_ms():
        pass
    return client.is_connected


def wake():
    # Where flash is to spare: esp32.Partition, or rp2.Flash(start=…, len=…).
    journal = Journal(FileBlockDevice("journal.bin", 16))
    # Days without a broker fill the queue.
    client = MQTTClient(
        "meter-1", SERVER, PORT, level=3, store=journal, max_mqueue_len=100, overflow="drop_oldest"
    )
    client.publish(b"home/meter-1/wake", b"%d" % count_wake(), qos=1)  # on flash from here on
    wifi = WiFi(SSID, PASSWORD)
    if wifi.is_up(left_ms()) and connect(client) and client.flush(left_ms()):
        client.disconnect()
        print("all acknowledged")
    else:
        print("kept for the next wake:", wifi.why or client.last_error or "no answer in time")


try:
    wake()
except Exception as error:  # broker, flash, memory or an argument; Ctrl-C is none
    print("kept for the next wake:", error)
machine.deepsleep(SLEEP_MS)  # in any case, or the battery is empty by tomorrow
