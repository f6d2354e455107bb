"""Attempts to reach network and broker follow each other soon: pauses have their own tests."""

import random
import time

import umqtt31.wifi


class Dice:
    @staticmethod
    def getrandbits(bits):
        return 50 if bits == 24 else random.getrandbits(bits)


class Hurried:
    sleep_ms = time.sleep_ms
    ticks_diff = time.ticks_diff

    @staticmethod
    def ticks_ms():
        return time.ticks_ms() * 30 % (1 << 30)


umqtt31.random = Dice
umqtt31.wifi.time = Hurried
