"""Readings with the time of their measuring, also of those before the clock was set.

After a reset a board knows no time until a time server has answered.  Meanwhile readings
wait with their ticks, and are stamped then.  From publish() on they are on flash: what
finds no broker goes out later, after the next reset too, with its own time.
"""

import json
import random
import time

import ntptime

from umqtt31 import FileBlockDevice, Journal
from umqtt31.queueing import MQTTClient
from umqtt31.wifi import WiFi

SSID = "name"
PASSWORD = "password"
SERVER = "broker.example"
PORT = 1883
PERIOD_MS = 10_000
MOST_WAITING = 100  # without a time; then the oldest are given up

# Most boards count seconds from 2000, computers from 1970.
EPOCH_S = 0 if time.gmtime(0)[0] == 1970 else 946_684_800

waiting = []  # (ticks, value) of readings that were not published yet
is_set = False  # is the clock?


def set_clock():
    # Waits a second for an answer -> is it set?
    try:
        ntptime.settime()
    except OSError as error:
        print("no time:", error)
        return False
    return True


def time_of(ticks):
    # -> seconds since 1970.  Ticks tell a difference of up to six days.
    return int(time.time()) + EPOCH_S - time.ticks_diff(time.ticks_ms(), ticks) // 1000


def measure():
    return 20 + random.getrandbits(2)  # your sensor here


wifi = WiFi(SSID, PASSWORD)
journal = Journal(FileBlockDevice("journal.bin", 16))
client = MQTTClient(
    "logger-4", SERVER, PORT, level=3, store=journal, max_mqueue_len=100, overflow="drop_oldest"
)
due = time.ticks_ms()
while True:
    now = time.ticks_ms()
    is_up = wifi.is_up(100)
    if time.ticks_diff(now, due) >= 0:
        due = time.ticks_add(due, PERIOD_MS)
        waiting.append((now, measure()))
        del waiting[:-MOST_WAITING]
        is_set = is_set or is_up and set_clock()
    try:
        while waiting and is_set:
            ticks, value = waiting[0]
            text = json.dumps({"at": time_of(ticks), "value": value})
            client.publish(b"home/logger-4/reading", text, qos=1)
            waiting.pop(0)
            print(text)
        if is_up and client.reconnect(100):
            client.poll(100)
    except OSError as error:
        print(error)
