"""The sensor node: samples on schedule, publishes readings, obeys commands.

Pure logic: client, sensors, network, LED, watchdog and clock are handed in, so the
same node runs on a board, on the desk and in a test.  While connected it works with
the heap locked; what it may not lose over a reset it keeps in `state`.
Topics and envelope: docs/readings.md.

With a long interval it sleeps in between: it wakes by a reset, takes one sample, waits
for what the settings ask, and says when to wake next.  Boot, numbers and uptime go on.
"""

import gc
import time

from micropython import heap_lock, heap_unlock

import commands
import health
import settings
from reading import Reading
from walltime import WallTime

VERSION = 0x0200  # major × 256 + minor

# The longest sleep: the LED blinks, the watchdog is fed and uptime counts meanwhile.
_LONGEST_WAIT_MS = 1000
_NO_LINK_WAIT_MS = 250
_ASKING_WAIT_MS = 50
_DRAIN_MS = 30000
# A commanded interval is on flash at once, but not more often than this.
_SAVE_EVERY_S = 60
_MOST_ANSWERS = 8
# After the last acknowledgement: commands that the broker kept come then, if any.
_COMMANDS_MS = 250
_UNKNOWN = "known: interval MILLISECONDS, sample, health, reset"


class Node:
    """Runs until a command resets it, or until it is time to sleep.

    `config` is a dict of `settings.KEYS`, `state` a `state.State` whose boot has
    begun, `client` an umqtt31.MQTTClient that was not connected yet; `network` is one
    of link.py; `clock` has ticks_ms, ticks_diff, ticks_add and sleep_ms; `log` is called
    as print is.  `now_s` is the time, seconds since 1970, or 0 if the board does not
    know; `ntp` an ntp.NTP that asks for it, or None, and `set_clock(seconds)` hears it.
    `cause` is why the board started, a number of health.CAUSE.
    """

    def __init__(
        self,
        config,
        state,
        client,
        sensors,
        network,
        led,
        watchdog=None,
        clock=time,
        log=print,
        *,
        ntp=None,
        now_s=0,
        set_clock=None,
        store=None,
        cause=0,
    ):
        self._state = state
        self._client = client
        self._sensors = sensors
        self._network = network
        self._led = led
        self._watchdog = watchdog
        self._clock = clock
        self._log = log
        self._ntp = ntp
        self._set_clock = set_clock
        self._store = store
        self._cause = cause
        self._config = config
        self._room = config["max_inflight"] + config["max_mqueue_len"]
        self._qos = config["streams"]
        self._reading = Reading(config["client_id"], VERSION, state.boot)
        root = topic_root(config)
        self._topics = [b"%s/reading/%d" % (root, i) for i in range(len(self._qos))]
        self._health_topic = root + b"/health"
        self._status = root + b"/status"
        self._command_topic = root + b"/command"
        self._answer_topic = root + b"/answer"
        self._answers = []
        self._greeting = b"online"
        self._is_subscribed = False
        self._is_greeted = False
        self._is_locked = False
        self._may_lock = True
        self._told = None  # the last reason why there is no connection
        self._quiet_at = None
        self._wants_sample = False
        self._wants_reset = False
        self._is_unsaved = False
        self._saved_at_s = -_SAVE_EVERY_S
        self.interval_ms = state.interval_ms or config["interval_ms"]
        slept = state.asleep or {}
        self._uptime_s = slept.get("uptime_s", 0)
        self._next_health_s = slept.get("next_health_s", self._uptime_s)
        # = the last sequence number used
        self.accepted = slept.get("accepted", [0] * len(self._qos))
        self._health_number = slept.get("health_number", 0)
        self.refused = 0  # readings that found no room or no connection
        self.sensor_errors = 0
        self.unlocked_rounds = 0  # rounds repeated because something allocated
        self._next_sample = clock.ticks_ms()
        self._last_second = clock.ticks_add(self._next_sample, -slept.get("uptime_ms", 0))
        self._walltime = WallTime()
        if now_s:
            self._walltime.set(now_s, self._uptime_s)
        client.on_message = self._on_message
        client.set_last_will(self._status, b"offline", True, 1)

    def run(self):
        """Work until a command asks for a reset or it is time to sleep.

        -> milliseconds to sleep, 0 for a reset at once; goodbye is said.
        """
        while not self._wants_reset:
            if self._sleeps():
                sleep_ms = self._run_awake(self._clock.ticks_ms())
                if sleep_ms:
                    return sleep_ms
            else:
                self.step()
        self.shut_down()
        return 0

    def step(self):
        """One round: feed, sample if due, then wait for the broker or the next sample."""
        # A hidden allocation, and every error that is raised, becomes a MemoryError
        # while the heap is locked: the next round, unlocked, shows what it was.
        if self._ntp:
            self._ask_time()
        if self._is_unsaved and self._uptime_s - self._saved_at_s >= _SAVE_EVERY_S:
            self._save()
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
        if self._is_unsaved:
            self._save()
        while self._clock.ticks_diff(end, self._clock.ticks_ms()) > 0:
            self.step()
            if self._is_greeted and not self._answers and not self._undelivered():
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
            "undelivered": self._undelivered(),
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
        except (OSError, ValueError) as error:
            # The client is closed and has lost nothing: the next round reconnects.
            # ValueError: how MicroPython's TLS refuses a certificate.
            self._tell("broker:", reason(error))

    def _serve(self, wait_ms):
        if self._client.is_connected:
            if not self._is_greeted:
                self._greet()
            if self._answers:
                self._answer()
            if self._uptime_s >= self._next_health_s:
                self._publish_health()
            self._client.poll(wait_ms)
        elif not self._network.is_up():
            if self._network.why:
                self._tell("network:", self._network.why)
            self._clock.sleep_ms(min(wait_ms, _NO_LINK_WAIT_MS))
        elif self._lacks_time():
            if self._ntp.error:
                self._tell("tls: waits for the time:", self._ntp.error)
            self._clock.sleep_ms(min(wait_ms, _NO_LINK_WAIT_MS))
        else:
            self._connect(wait_ms)

    def _tell(self, kind, text):
        # Each reason once, until another one comes or all is well.
        text = str(text)
        if self._told != (kind, text):
            self._told = kind, text
            self._log(kind, text)

    def _lacks_time(self):
        # Certificates have dates, and the board has no battery for its clock.
        return self._config["tls"] and self._ntp and not self._walltime.is_known

    def _ask_time(self):
        if self._ntp.is_asking or self._client.is_connected or self._network.is_up():
            seconds = self._ntp.work()
            if seconds:
                self._walltime.set(seconds, self._uptime_s)
                if self._set_clock:
                    self._set_clock(seconds)

    def _connect(self, wait_ms):
        # What a connection keeps shall not come to lie behind the garbage of the last.
        gc.collect()
        if self._client.reconnect(wait_ms):
            self._is_greeted = False
            self._told = None
            gc.collect()
            self._log("connected")
        elif self._client.last_error:
            self._tell("broker:", reason(self._client.last_error))

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
        if self._ntp and self._ntp.is_asking:
            wait_ms = min(wait_ms, _ASKING_WAIT_MS)
        return max(wait_ms, 0)

    def _undelivered(self):
        return self._client.inflight + self._client.queued

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
        envelope = self._envelope(stream, number)
        if self._is_taken(self._topics[stream], envelope, self._qos[stream]):
            self.accepted[stream] = number
            self._log("accepted", stream, number)
        else:
            self.refused += 1

    def _envelope(self, stream, number):
        time = self._walltime
        time.read(self._uptime_s)
        return self._reading.number(stream, number, self._uptime_s, time.high, time.low)

    def _publish_health(self):
        self._lock(False)
        health.measure(
            self._reading,
            self._client,
            self._network,
            self._cause,
            self.refused,
            self._room,
            self._store,
        )
        number = self._health_number + 1
        if self._is_taken(self._health_topic, self._envelope(health.STREAM, number), 1):
            self._health_number = number
            self._next_health_s = self._uptime_s + health.EVERY_S

    def _is_taken(self, topic, envelope, qos):
        before = self._undelivered()
        try:
            self._client.publish(topic, envelope, False, qos)
            return True
        except OSError:
            return False  # no room, or no connection at QoS 0
        except MemoryError:
            # With the heap locked every error is this one, one that came after the
            # message was taken included; what is stored decides.
            return self._undelivered() > before

    # --- commands ---------------------------------------------------------------

    def _on_message(self, message):
        # Done before the acknowledgement leaves, so that a reset cannot lose it; a
        # command is rare, so it may allocate.
        was_locked = self._is_locked
        self._lock(False)
        if message.retain:
            # It would come again with every connection: a retained `reset` for ever.
            self._log("command ignored: it is retained")
        elif message.payload_len > commands.LONGEST:
            self._log("command refused:", "longer than", commands.LONGEST, "bytes")
        else:
            self._command(message.payload)
        self._lock(was_locked)

    def _command(self, payload):
        name, word, argument = commands.parse(payload)
        why = self._obey(word, argument)
        if why:
            self._log("command refused:", why)
        else:
            self._log("command", word, argument)
        if name and len(self._answers) < _MOST_ANSWERS:
            text = "refused: " + why if why else "done"
            self._answers.append(("%s %s" % (name, text)).encode())

    def _obey(self, word, argument):
        # -> None, or why not.
        if word == "interval":
            milliseconds = commands.number(argument)
            if not settings.is_allowed("interval_ms", milliseconds):
                return "interval: allowed: " + settings.allowed("interval_ms")
            self._change_interval(milliseconds)
        elif argument or word not in ("sample", "health", "reset"):
            return _UNKNOWN
        elif word == "sample":
            self._wants_sample = True
        elif word == "health":
            self._next_health_s = self._uptime_s
        else:
            self._wants_reset = True
        return None

    def _change_interval(self, interval_ms):
        if interval_ms == self.interval_ms:
            return
        self._state.interval_ms = self.interval_ms = interval_ms
        self._is_unsaved = True
        if self._uptime_s - self._saved_at_s >= _SAVE_EVERY_S:
            self._save()
        if self._next_sample is not None:
            self._next_sample = self._clock.ticks_add(self._clock.ticks_ms(), interval_ms)

    def _save(self):
        self._state.save()
        self._is_unsaved = False
        self._saved_at_s = self._uptime_s

    def _answer(self):
        self._lock(False)
        try:
            while self._answers:
                self._client.publish(self._answer_topic, self._answers[0], False, 1)
                self._answers.pop(0)
        except OSError:
            pass  # queue full: again in the next round

    # --- sleep ------------------------------------------------------------------

    def _sleeps(self):
        return 0 < self._config["sleep_above_ms"] <= self.interval_ms

    def _run_awake(self, start):
        # One sample; then until the settings' wish is fulfilled or there is no way.
        # -> milliseconds to sleep, 0 when a command changed the plan.
        self._greeting = b"asleep"
        self._is_greeted = False
        if self._is_sample_due():
            self._sample()
        while not self._wants_reset and self._is_awake_for(start):
            self.step()
        if self._wants_reset or not self._sleeps():
            self._greeting = b"online"
            self._is_greeted = False
            return 0
        self._client.disconnect()
        now = self._clock.ticks_ms()
        sleep_ms = max(self.interval_ms - self._clock.ticks_diff(now, start), 1)
        since_second_ms = self._clock.ticks_diff(now, self._last_second) + sleep_ms
        self._state.fall_asleep(
            {
                "uptime_s": self._uptime_s + since_second_ms // 1000,
                "uptime_ms": since_second_ms % 1000,
                "next_health_s": self._next_health_s,
                "health_number": self._health_number,
                "accepted": self.accepted,
            }
        )
        self._log("sleep", sleep_ms)
        return sleep_ms

    def _is_awake_for(self, start):
        waited_ms = self._clock.ticks_diff(self._clock.ticks_ms(), start)
        if waited_ms >= self._config["awake_ms"] or not self._sleeps():
            return False
        if not self._is_due_to_send():
            return False
        if not self._client.is_connected:
            # Told: the network or the broker said no.
            return self._told is None
        if not self._is_greeted or self._answers or self._undelivered():
            self._quiet_at = None
            return True
        now = self._clock.ticks_ms()
        if self._quiet_at is None:
            self._quiet_at = now
        return self._clock.ticks_diff(now, self._quiet_at) < _COMMANDS_MS

    def _is_due_to_send(self):
        if self._config["sleep_after"] == "acknowledged" or self._client.is_connected:
            return True
        if not self._state.asleep:
            return True  # the first time since it was switched on: people wait for it
        # The radio stays off until half of the room is taken.
        return 2 * self._undelivered() >= self._room


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
