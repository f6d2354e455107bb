"""The sensor node: samples on schedule, publishes readings, obeys commands.

Pure logic: client, sensors, network, LED, watchdog and clock are handed in, so the
same node runs on a board, on the desk and in a test.  While connected it works with
the heap locked; what it may not lose over a reset it keeps in `state`.
Topics and envelope: docs/reference/readings.md.

With a long interval it sleeps in between: it wakes by a reset, takes one sample, waits
for what the settings ask, and says when to wake next.  Boot, numbers and uptime go on.
"""

import gc
import time
from binascii import unhexlify

import commands
import health
from micropython import heap_lock, heap_unlock
from schedule import LONGEST_MS, SHORTEST_MS, Schedule, Sleep
from timekeeper import Timekeeper

VERSION = 0x0200  # major × 256 + minor

# The longest wait: between two waits the LED blinks and the watchdog is fed.
_LONGEST_WAIT_MS = 1000
_NO_LINK_WAIT_MS = 250
_ASKING_WAIT_MS = 50
_REFUSED_FILTER = 265  # a code of MQTTError
_DRAIN_MS = 30000
_NOW_S = 1 << 29  # later than any uptime, so that all that waits is due
# A tuple inside `except` would be made at each error.  With a locked heap that fails, and
# Ctrl-C would become a MemoryError.  MicroPython's TLS refuses certificates by ValueError.
_BROKER_ERRORS = (OSError, ValueError)
_UNKNOWN = "known: interval MILLISECONDS, sample, health, reset"


class Node:
    """Runs until a command resets it, or until it is time to sleep.

    `config` is a dict of `settings.KEYS`, `state` a `state.State` whose boot has
    begun, `client` an umqtt31.MQTTClient that was not connected yet; `network` is one
    as wifi.WiFi; `clock` has ticks_ms, ticks_diff, ticks_add and sleep_ms; `log` is called
    as print is.  `times` is a timekeeper.Timekeeper; `store` the client's; `cause` why
    the board started, a number of health.CAUSE; `updates` an ota.Updates, `names` an
    asking.Names, or None.
    """

    def __init__(
        self, config, state, client, sensors, network, led, watchdog=None, clock=time, log=print,
        times=None, store=None, cause=0, updates=None, names=None,
    ):  # fmt: skip
        self._config = config
        self._state = state
        self._client = client
        self._sensors = sensors
        self._network = network
        self._led = led
        self._watchdog = watchdog
        self._clock = clock
        self._log = log
        self._times = times or Timekeeper(clock)
        self._updates = updates
        self._names = names
        self._outbox = []  # answers that wait: (topic, answer)
        self._room = config["max_inflight"] + config["max_mqueue_len"]
        self._qos = config["streams"]
        self._is_json = config["format"] == "json"
        if self._is_json:  # load only what is used
            from jsonreading import JSONReading as Reading
        else:
            from reading import Reading
        self._reading = Reading(config["client_id"], VERSION, state.boot)
        self._schedule = Schedule(clock, state.interval_ms or config["interval_ms"])
        self._fault = health.Fault(store, state)
        self._name_topics(topic_root(config))
        self._begin(cause, store)
        client.on_message = self._on_message
        client.set_last_will(self._status, b"offline", True, 1)

    def _name_topics(self, root):
        self._topics = [b"%s/reading/%d" % (root, i) for i in range(len(self._qos))]
        self._health_topic = root + b"/health"
        self._status = root + b"/status"
        self._fault_topic = root + b"/fault"
        self._command_topic = root + b"/command"
        forged = (self._state.asleep or {}).get("forged", 0)
        signed = None
        if self._config["commands"] == "signed":
            key = unhexlify(self._config["update_key"])
            signed = commands.Signed(key, self._command_topic, self._state)
        self._commands = commands.Commands(
            self._obey, self._log, root + b"/answer", self._outbox, signed, forged
        )
        self._update_topic = root + b"/update"
        if self._updates:
            self._updates.attach(root + b"/update/answer", self._outbox)
        self._time_topic = self._config["time_topic"].encode()
        self._discovery = None
        if self._config["discovery"] and not self._state.asleep:  # else the broker has it
            from discovery import Discovery

            status = None if self._config["sleep_above_ms"] else self._status
            self._discovery = Discovery(
                self._config["discovery"], self._config["client_id"], self._topics[0], status
            )

    def _begin(self, cause, store):
        # After a sleep the same boot goes on, with its counters.
        slept = self._state.asleep or {}
        self._times.begin(slept)
        self._started_s = self._times.uptime_s
        self._health = health.Health(cause, self._room, store, slept)
        # by stream: the last sequence number used
        self.accepted = slept.get("accepted", [0] * len(self._qos))
        self.refused = slept.get("refused", 0)  # readings without room or connection
        self.sensor_errors = 0
        self.unlocked_rounds = 0  # rounds repeated because something allocated
        is_on_trial = self._updates is not None and self._updates.is_on_trial
        # Without a connection max_mqueue_len messages may wait.  The next sample must find room.
        room = min(self._room, 2 * (self._config["max_mqueue_len"] - len(self._qos)))
        self._sleep = Sleep(self._config, self._clock, room, slept and not is_on_trial)
        self._greet_with(b"online")
        self._is_subscribed = False
        self._is_locked = False
        self._may_lock = True
        self._told = None  # the last reason why there is no connection
        self._told_of_sensors = None
        self._wants_sample = False
        self._wants_outcome = False  # is the outcome of the last update to be told?
        self._wants_reset = False

    @property
    def interval_ms(self):
        """Milliseconds from sample to sample."""
        return self._schedule.interval_ms

    def run(self):
        """Work until a command asks for a reset or it is time to sleep.

        -> milliseconds to sleep, 0 for a reset at once; goodbye is said.
        """
        while not self._wants_reset:
            if self._sleep.is_wanted(self.interval_ms):
                sleep_ms = self._run_awake()
                if sleep_ms:
                    return sleep_ms
            else:
                self.step()
        self.shut_down()
        return 0

    def step(self):
        """One round: feed, sample if due, then wait for the broker or the next sample."""
        self._times.ask(self._network)
        if self._names:
            self._names.work(not self._client.is_connected and self._network.is_up())
        if self._updates:
            self._update()
        self._look_at_journal()
        self._save(self._state.save_when_due, self._times.uptime_s)
        self._lock(self._may_lock and self._client.is_connected)
        self._may_lock = True
        try:
            self._round()
        except MemoryError:
            self._lock(False)
            self._find_out()
        finally:
            self._lock(False)

    def shut_down(self):
        """Before a planned reset: everything out, `offline` said, connection closed."""
        self._log("draining")
        end = self._clock.ticks_add(self._clock.ticks_ms(), _DRAIN_MS)
        self._schedule.stop()
        self._greet_with(b"offline")
        while self._clock.ticks_diff(end, self._clock.ticks_ms()) > 0:
            self.step()
            if self._is_said():
                break
        self._save(self._state.save_when_due, _NOW_S)
        self._client.disconnect()

    def report(self):
        """What this boot did, as a dict for people and tools."""
        gc.collect()
        return {
            "boot": self._state.boot,
            "uptime_s": self._times.uptime_s,
            "interval_ms": self.interval_ms,
            "accepted": self.accepted,
            "refused": self.refused,
            "undelivered": self._undelivered(),
            "commands_refused": self._commands.forged,
            "sensor_errors": self.sensor_errors,
            "unlocked_rounds": self.unlocked_rounds,
            # CPython cannot tell.
            "free_heap": gc.mem_free() if hasattr(gc, "mem_free") else 0,
        }

    # --- one round --------------------------------------------------------------

    def _round(self):
        if self._watchdog:
            self._watchdog.feed()
        self._times.count()
        self._led.show(self._client.is_connected)
        if self._schedule.is_due() or self._wants_sample:
            self._sample()
        try:
            self._serve(self._wait_ms())
        except _BROKER_ERRORS as error:
            # The client has closed the connection and lost nothing.  The next round reconnects.
            self._lock(False)
            self._tell("broker:", reason(error))

    def _find_out(self):
        # With a locked heap a hidden allocation raises MemoryError, and so does each other
        # error, as its text needs memory.
        if self._client.is_connected:
            self.unlocked_rounds += 1
            self._may_lock = False
            return
        try:
            self._client.poll(0)  # raises the error again
        except _BROKER_ERRORS as error:
            self._tell("broker:", reason(error))

    def _serve(self, wait_ms):
        if self._client.is_connected:
            if not self._is_greeted:
                self._greet()
            if self._wants_outcome:
                self._tell_outcome()
            if self._outbox:
                self._lock(False)
                commands.publish_all(self._client, self._outbox)
            if self._times.uptime_s >= self._health.next_s:
                self._publish_health()
            self._client.poll(wait_ms)
        elif not self._network.is_up():
            self._wait_for("network:", self._network.why, min(wait_ms, _NO_LINK_WAIT_MS))
        elif self._config["tls"] and self._times.is_lacking:
            # Certificates have dates, and the board's clock has no battery.
            why = self._times.error
            self._wait_for("tls: waits for the time:", why, min(wait_ms, _NO_LINK_WAIT_MS))
        elif self._names and not self._names.is_ready:
            self._wait_for("broker:", self._names.error, min(wait_ms, _ASKING_WAIT_MS))
        else:
            self._connect(wait_ms)

    def _wait_for(self, kind, why, wait_ms):
        if why:
            self._tell(kind, why)
        self._clock.sleep_ms(wait_ms)

    def _look_at_journal(self):
        is_known = self._state.journal is not None
        if self._fault.look(self._undelivered()):
            self._log(health.FAULT)
            self._fault.is_told = False
            self._sleep.send_all()
            self._is_greeted = False
            if not is_known:
                self._health.next_s = 0

    def _tell(self, kind, text):
        # Each reason is logged once, until another one comes or all is well.
        text = str(text)
        if self._told != (kind, text):
            self._told = kind, text
            self._log(kind, text)

    def _connect(self, wait_ms):
        # Else the new connection would get memory behind the garbage of the last one.
        gc.collect()
        if self._client.reconnect(wait_ms):
            self._is_greeted = False
            self._fault.is_told = False
            self._told = None
            gc.collect()
            self._log("connected")
        elif self._client.last_error:
            self._tell("broker:", reason(self._client.last_error))

    def _greet_with(self, greeting):
        self._greeting = greeting
        self._is_greeted = False

    def _greet(self):
        # A broker of level 3 may have forgotten the session, so it is said on every connection.
        self._lock(False)
        if not self._is_subscribed:
            update_topic = self._updates and self._update_topic
            # Time at QoS 0, as no broker keeps that for later.
            for topic, qos in (self._command_topic, 2), (update_topic, 1), (self._time_topic, 0):
                if self._watchdog:
                    self._watchdog.feed()  # each waits for its own answer
                try:
                    if topic:
                        self._client.subscribe(topic, qos)
                except OSError as error:
                    if getattr(error, "code", 0) != _REFUSED_FILTER:
                        raise
                    self._log("broker:", error)  # goes on without it until the next start
            self._is_subscribed = True
        try:
            fault = self._fault.text
            if fault is not None:
                self._client.publish(self._fault_topic, fault.encode(), True, 1)
                self._fault.told()
            self._client.publish(self._status, self._greeting, True, 1)
            self._is_greeted = True
            self._wants_outcome = self._updates is not None
        except OSError:
            pass  # the queue is full: the next round tries again

    def _tell_outcome(self):
        self._lock(False)
        is_told = self._save(lambda _: self._updates.told_at_start(), None)
        # That it went back is told once.
        self._wants_outcome = not is_told and self._updates.is_on_trial

    def _wait_ms(self):
        wait_ms = self._sleep.wait_ms(min(_LONGEST_WAIT_MS, self._client.next_due_ms()))
        if self._times.is_asking:
            wait_ms = min(wait_ms, _ASKING_WAIT_MS)
        return self._schedule.left_ms(wait_ms)

    def _is_said(self):
        # Is the node connected, and has all that it said arrived?
        return self._is_greeted and not self._outbox and not self._undelivered()

    def _undelivered(self):
        return self._client.inflight + self._client.queued

    def _lock(self, wanted):
        if wanted and not self._is_locked:
            heap_lock()
        elif self._is_locked and not wanted:
            heap_unlock()
        self._is_locked = wanted

    # --- sampling ---------------------------------------------------------------

    def _sample(self):
        self._wants_sample = False
        if self._is_json:
            self._lock(False)  # text allocates
        if not self._measure():
            # A sensor allocates, or its error needs a text.
            self._lock(False)
            self.unlocked_rounds += 1
            self._measure()
        for stream in range(len(self._qos)):
            self._publish(stream)
        if self._discovery:
            try:
                self._discovery.tell(self._reading, self._client.publish)
            except OSError:
                pass  # the queue is full: the next sample tries again

    def _measure(self):
        # -> False where it has to be done again, with the heap unlocked.
        self._reading.clear()
        for sensor in self._sensors:
            try:
                sensor.measure(self._reading)
            except OSError:
                self.sensor_errors += 1  # the part does not answer
            except Exception as error:
                if self._is_locked:
                    return False
                self.sensor_errors += 1
                self._tell_of(sensor, error)
        return True

    def _tell_of(self, sensor, error):
        text = "%s: %s: %s" % (type(sensor).__name__, type(error).__name__, error)
        if self._told_of_sensors != text:
            self._told_of_sensors = text
            self._log("sensor:", text)

    def _publish(self, stream):
        number = self.accepted[stream] + 1
        envelope = self._envelope(stream, number)
        if self._is_taken(self._topics[stream], envelope, self._qos[stream]):
            self.accepted[stream] = number
            self._log("accepted", stream, number)
        else:
            self.refused += 1

    def _envelope(self, stream, number):
        now = self._times
        return self._reading.number(stream, number, now.uptime_s, now.high, now.low)

    def _publish_health(self):
        self._lock(False)
        self._health.measure(
            self._reading, self._client, self._network, self.refused, self._commands.forged
        )
        number = self._health.number + 1
        if self._is_taken(self._health_topic, self._envelope(health.STREAM, number), 1):
            self._health.sent(self._times.uptime_s)

    def _is_taken(self, topic, envelope, qos):
        before = self._undelivered()
        try:
            self._client.publish(topic, envelope, False, qos)
            return True
        except OSError:
            return False  # no room, or no connection at QoS 0
        except MemoryError:
            # With a locked heap every error is this one, also one that came after the
            # message was accepted.  So look whether it was.
            if self._undelivered() > before:
                return True
            if not (self._is_locked and self._fault.has_failed):
                return False
            self._lock(False)  # room in RAM has to be allocated
            return self._is_taken(topic, envelope, qos)

    # --- commands ---------------------------------------------------------------

    def _on_message(self, message):
        # The command is done before its acknowledgement leaves, so a reset cannot lose it.
        was_locked = self._is_locked
        self._lock(False)
        try:
            self._take(message)
        except MemoryError as error:
            # Not raised: the message would stay unacknowledged, and after a few of these a
            # broker sends no more.
            self._log("message lost:", error)
        self._lock(was_locked)

    def _take(self, message):
        if self._updates and message.topic_is(self._update_topic):
            self._updates.take(message.payload, message.retain)
        elif self._time_topic and message.topic_is(self._time_topic):
            self._times.hear(message.payload, message.retain)
        elif message.topic_is(self._command_topic):  # others: filters of old settings
            self._commands.take(message)

    def _update(self):
        if self._updates.is_complete and self._updates.stage():
            self._wants_reset = True
        elif (
            self._times.uptime_s - self._started_s >= self._config["trial_s"]
            and self._updates.takes_back()
        ):
            self._log("update: taken back, the broker was not reached")
            self._wants_reset = True

    def _obey(self, word, argument):
        # -> None, or why not.
        if word == "interval":
            milliseconds = commands.number(argument) or 0
            if not SHORTEST_MS <= milliseconds <= LONGEST_MS:
                return "interval: a whole number from %d to %d" % (SHORTEST_MS, LONGEST_MS)
            if milliseconds != self.interval_ms:
                self._schedule.change(milliseconds)
                self._state.change_interval(milliseconds)
                self._save(self._state.save_when_due, self._times.uptime_s)
        elif argument or word not in ("sample", "health", "reset"):
            return _UNKNOWN
        elif word == "sample":
            self._wants_sample = True
        elif word == "health":
            self._health.next_s = 0
        else:
            self._wants_reset = True
        return None

    def _save(self, save, argument):
        # -> is it on flash?
        try:
            save(argument)
            return True
        except OSError as error:
            self._log("flash:", reason(error))  # it may be full: the node tries again in a minute
            return False

    # --- sleep ------------------------------------------------------------------

    def _run_awake(self):
        # Take one sample and work until it is time to sleep -> milliseconds to sleep, 0 when
        # a command changed the plan.
        sleep, client = self._sleep, self._client
        sleep.begin()
        self._greet_with(b"asleep")
        late = []
        if self._schedule.is_due():
            late = self._sample_for_sleep()
        self._look_at_journal()
        while not sleep.is_over(
            client.is_connected,
            self._is_said()
            and not self._wants_sample
            and not (self._updates and self._updates.is_receiving),
            self._told is not None,
            self._undelivered(),
        ):
            if late and self._is_said():
                self.refused -= len(late)
                self._measure()
                for stream in late:
                    self._publish(stream)
                late = []
            self.step()
            if self._wants_reset or not sleep.is_wanted(self.interval_ms):
                self._greet_with(b"online")
                sleep.begin()
                return 0
        if self._wants_sample:
            self._sample()  # too late to send it now, and the broker will not repeat the command
        client.disconnect()
        sleep_ms = sleep.left_ms(self.interval_ms)
        asleep = self._times.after(sleep_ms)
        self._health.fall_asleep(asleep)
        asleep["accepted"] = self.accepted
        asleep["forged"] = self._commands.forged
        asleep["refused"] = self.refused + self._fault.volatile + client.stats.dropped
        if not self._save(self._state.fall_asleep, asleep):
            # Else it would wake with numbers that were used.
            sleep.stay_awake()
            self._greet_with(b"online")
            return 0
        self._log("sleep", sleep_ms)
        return sleep_ms

    def _sample_for_sleep(self):
        # -> the streams that were refused: QoS 0 without a connection, all without room.  They
        # are measured again later.
        before = self.accepted[:]
        self._sample()
        late = [i for i in range(len(before)) if self.accepted[i] == before[i]]
        if any(self._qos[i] for i in late):
            self._sleep.send_all()
        return late


class Led:
    """The status LED: lit while the broker is there, blinking while it is not.

    `pin` is a machine.Pin or None (no LED), `on_level` the level that lights it.
    """

    def __init__(self, pin, on_level=1):
        self._pin = pin
        self._on = on_level
        self._lit = False

    def show(self, is_online):
        """Called once per round of the main loop, which makes the blinking."""
        self._lit = is_online or not self._lit
        if self._pin:
            self._pin.value(self._on if self._lit else 1 - self._on)


def reason(error):
    """The text of an error alone: str() of an OSError but MQTTError shows its number too."""
    return error.args[-1] if error.args and not hasattr(error, "code") else error


def topic_root(config):
    """PREFIX/DEVICE, or PREFIX/SITE/DEVICE where a site is set, as bytes."""
    names = [config["prefix"], config["site"], config["client_id"]]
    return "/".join(name for name in names if name).encode()
