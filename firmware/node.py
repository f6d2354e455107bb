"""The sensor node: samples on schedule, publishes readings, obeys commands.

Pure logic: client, sensors, network, LED, watchdog and clock are handed in, so the
same node runs on a board, on the desk and in a test.  While connected it works with
the heap locked; what it may not lose over a reset it keeps in `state`.
Topics and envelope: docs/readings.md.
"""

import gc
import time

from micropython import heap_lock, heap_unlock

import commands
import settings
from reading import Reading

VERSION = 0x0100  # major × 256 + minor

# The longest sleep: the LED blinks, the watchdog is fed and uptime counts meanwhile.
_LONGEST_WAIT_MS = 1000
_NO_LINK_WAIT_MS = 250
_DRAIN_MS = 30000


class Node:
    """Runs for ever, until a command resets it.

    `config` is a dict of `settings.KEYS`, `state` a `state.State` whose boot has
    begun, `client` an umqtt31.MQTTClient that was not connected yet; `clock` has
    ticks_ms, ticks_diff, ticks_add and sleep_ms; `log` is called as print is.
    """

    def __init__(
        self, config, state, client, sensors, network, led, watchdog=None, clock=time, log=print
    ):
        self._state = state
        self._client = client
        self._sensors = sensors
        self._network = network
        self._led = led
        self._watchdog = watchdog
        self._clock = clock
        self._log = log
        self._qos = config["streams"]
        self._reading = Reading(config["client_id"], VERSION, state.boot)
        root = topic_root(config)
        self._topics = [b"%s/reading/%d" % (root, i) for i in range(len(self._qos))]
        self._status = root + b"/status"
        self._command_topic = root + b"/command"
        self._greeting = b"online"
        self._is_subscribed = False
        self._is_greeted = False
        self._is_locked = False
        self._may_lock = True
        self._told_error = None
        self._wants_sample = False
        self._wants_reset = False
        self.interval_ms = state.interval_ms or config["interval_ms"]
        self.accepted = [0] * len(self._qos)  # = the last sequence number used
        self.refused = 0  # readings that found no room or no connection
        self.sensor_errors = 0
        self.unlocked_rounds = 0  # rounds repeated because something allocated
        self._next_sample = self._last_second = clock.ticks_ms()
        self._uptime_s = 0
        client.on_message = self._on_message
        client.set_last_will(self._status, b"offline", True, 1)

    def run(self):
        """Work until a command asks for a reset, then drain and say goodbye."""
        while not self._wants_reset:
            self.step()
        self.shut_down()

    def step(self):
        """One round: feed, sample if due, then wait for the broker or the next sample."""
        # A hidden allocation, and every error that is raised, becomes a MemoryError
        # while the heap is locked: the next round, unlocked, shows what it was.
        self._lock(self._may_lock and self._client.is_connected)
        self._may_lock = True
        try:
            self._round()
        except MemoryError:
            self.unlocked_rounds += 1
            self._may_lock = False
        finally:
            self._lock(False)

    def shut_down(self):
        """Before a planned reset: everything out, `offline` said, connection closed."""
        self._log("draining")
        end = self._clock.ticks_add(self._clock.ticks_ms(), _DRAIN_MS)
        self._next_sample = None
        self._greeting = b"offline"
        self._is_greeted = False
        while self._clock.ticks_diff(end, self._clock.ticks_ms()) > 0:
            self.step()
            if self._is_greeted and not (self._client.inflight or self._client.queued):
                break
        self._client.disconnect()

    def report(self):
        """What this boot did, as a dict for people and tools."""
        return {
            "boot": self._state.boot,
            "uptime_s": self._uptime_s,
            "interval_ms": self.interval_ms,
            "accepted": self.accepted,
            "refused": self.refused,
            "undelivered": self._client.inflight + self._client.queued,
            "sensor_errors": self.sensor_errors,
            "unlocked_rounds": self.unlocked_rounds,
            "free_heap": _free_heap(),
        }

    # --- one round --------------------------------------------------------------

    def _round(self):
        if self._watchdog:
            self._watchdog.feed()
        self._count_seconds()
        self._led.show(self._client.is_connected)
        if self._is_sample_due():
            self._sample()
        try:
            self._serve(self._wait_ms())
        except OSError as error:
            # The client is closed and has lost nothing: the next round reconnects.
            self._log("broker:", reason(error))

    def _serve(self, wait_ms):
        if self._client.is_connected:
            if not self._is_greeted:
                self._greet()
            self._client.poll(wait_ms)
        elif not self._network.is_up():
            self._clock.sleep_ms(min(wait_ms, _NO_LINK_WAIT_MS))
        else:
            self._connect(wait_ms)

    def _connect(self, wait_ms):
        # What a connection keeps shall not come to lie behind the garbage of the last.
        gc.collect()
        if self._client.reconnect(wait_ms):
            self._is_greeted = False
            self._told_error = None
            gc.collect()
            self._log("connected")
        elif self._client.last_error is not self._told_error:
            self._told_error = self._client.last_error
            self._log("broker:", reason(self._told_error))

    def _greet(self):
        # Not in the session of a level 3 broker for sure, so said on every connect.
        self._lock(False)
        if not self._is_subscribed:
            self._client.subscribe(self._command_topic, 2)
            self._is_subscribed = True
        try:
            self._client.publish(self._status, self._greeting, True, 1)
            self._is_greeted = True
        except OSError:
            pass  # queue full: again in the next round

    def _wait_ms(self):
        wait_ms = min(_LONGEST_WAIT_MS, self._client.next_due_ms())
        if self._next_sample is not None:
            left = self._clock.ticks_diff(self._next_sample, self._clock.ticks_ms())
            wait_ms = min(wait_ms, left)
        return max(wait_ms, 0)

    def _count_seconds(self):
        now = self._clock.ticks_ms()
        while self._clock.ticks_diff(now, self._last_second) >= 1000:
            self._last_second = self._clock.ticks_add(self._last_second, 1000)
            self._uptime_s += 1

    def _lock(self, wanted):
        if wanted and not self._is_locked:
            heap_lock()
        elif self._is_locked and not wanted:
            heap_unlock()
        self._is_locked = wanted

    # --- sampling ---------------------------------------------------------------

    def _is_sample_due(self):
        if self._next_sample is None:
            return False
        late_ms = self._clock.ticks_diff(self._clock.ticks_ms(), self._next_sample)
        if late_ms >= 0:
            # On schedule without drift; samples that were missed are not made up for.
            skipped = late_ms // self.interval_ms
            self._next_sample = self._clock.ticks_add(
                self._next_sample, (skipped + 1) * self.interval_ms
            )
            return True
        return self._wants_sample

    def _sample(self):
        self._wants_sample = False
        self._reading.clear()
        for sensor in self._sensors:
            try:
                sensor.measure(self._reading)
            except OSError:
                self.sensor_errors += 1
        for stream in range(len(self._qos)):
            self._publish(stream)

    def _publish(self, stream):
        number = self.accepted[stream] + 1
        envelope = self._reading.number(stream, number, self._uptime_s)
        if self._is_taken(self._topics[stream], envelope, self._qos[stream]):
            self.accepted[stream] = number
            self._log("accepted", stream, number)
        else:
            self.refused += 1

    def _is_taken(self, topic, envelope, qos):
        before = self._client.inflight + self._client.queued
        try:
            self._client.publish(topic, envelope, False, qos)
            return True
        except OSError:
            return False  # no room, or no connection at QoS 0
        except MemoryError:
            # With the heap locked every error is this one, one that came after the
            # message was taken included; what is stored decides.
            return self._client.inflight + self._client.queued > before

    # --- commands ---------------------------------------------------------------

    def _on_message(self, message):
        command = commands.parse(message, message.payload_len)
        if command == commands.SAMPLE:
            self._wants_sample = True
        elif command == commands.RESET:
            self._wants_reset = True
        elif command == commands.NONE or not settings.is_allowed("interval_ms", command):
            self._log("command not understood")
            return
        else:
            self._change_interval(command)
        self._log("command", command)

    def _change_interval(self, interval_ms):
        # On flash before the acknowledgement leaves, so that a reset keeps it; a
        # command is rare, so writing it may allocate.
        was_locked = self._is_locked
        self._lock(False)
        self._state.interval_ms = self.interval_ms = interval_ms
        self._state.save()
        if self._next_sample is not None:
            self._next_sample = self._clock.ticks_add(self._clock.ticks_ms(), interval_ms)
        self._lock(was_locked)


def reason(error):
    """The text of an error alone: str() of an OSError shows its number too."""
    return error.args[-1] if error.args else error


def topic_root(config):
    """PREFIX/DEVICE, or PREFIX/SITE/DEVICE where a site is set, as bytes."""
    names = [config["prefix"], config["site"], config["client_id"]]
    return "/".join(name for name in names if name).encode()


def _free_heap():
    gc.collect()
    return gc.mem_free() if hasattr(gc, "mem_free") else 0  # CPython cannot tell
