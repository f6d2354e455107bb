"""Plays the steps of scripts: who says what, and when.

`dialogues/README.md` describes the notation.  A step that does not happen as it is written is an
AssertionError; so is a packet that the client sent and no step names.  Steps use the client's
public names and its stream.  Runs under CPython and MicroPython.
"""

import errno

import umqtt31
from host_tests.client import wire
from host_tests.client.dialogue import Dialogue, NoMemory, error_of
from host_tests.client.flash import FailingFlash
from host_tests.client.notation import arguments_of, bytes_of, items_of, packet_of, value_of
from host_tests.standin.store import KeepingStore
from umqtt31 import MQTTError, robust, simple

# What becomes of the stream: its attribute, and the value if the step has none.
_STREAM = {
    "blocked": ("is_blocked", True),
    "free": ("is_blocked", False),
    "broken": ("write_error", OSError(104)),
    "mended": ("write_error", None),
    "out_of_memory": ("write_error", MemoryError()),
    "write_most": ("write_most", 0),
    "read_most": ("read_most", 0),
    "takes": ("takes", -1),
}
# Words of `with`.
_BEGINNINGS = ("journal", "store", "clean", "offline", "simple", "robust", "aio")
_LISTS = ("C:", "B:", "A:", "feed", "publish")  # steps that say many things


def _by_kind(packets):
    return [one for kind in range(16) for one in packets if one[0] >> 4 == kind]


class Robust(robust.MQTTClient):
    """What delay() and log() are told is in `told`."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.told = []

    def delay(self, i):
        assert len(self.told) < 20, "connects too often"  # no OSError, which is survived
        self.told.append(i)

    def log(self, in_reconnect, e):
        assert isinstance(e, OSError)
        self.told.append("reconnect" if in_reconnect else "lost")


class Player:
    """The client of a script that is being played, and what of it no step named yet."""

    dialogue = Dialogue

    def __init__(self, level, hears_drops=False, is_queueing=False):
        self.level = level
        self.hears_drops = hears_drops
        self.is_queueing = is_queueing
        self.options = {}
        self.d = None
        self.dropped = []
        self.hears = False  # does the script say what the application gets?

    def play(self, step):
        """One step; see `dialogues/README.md`."""
        if step.startswith("@"):
            levels, _, step = step.partition(" ")
            if str(self.level) not in levels:
                return
        action, wanted = step, ""
        if not step.startswith(("on_", "callback")):  # what a hook does has its own results
            action, _, wanted = step.partition(" -> ")
        if step.startswith("with") and wanted:
            return self._expect(lambda: self._begin(action), wanted)
        if step.startswith("with") or self.d is None:
            self._begin(step)
            if step.startswith("with"):
                return
        times = 1
        before, _, count = action.rpartition(" x")
        if count.isdigit() and action.split()[0] not in _LISTS:
            action, times = before, int(count)
        for _ in range(times):
            if wanted:
                self._expect(lambda: self._do(action), wanted)
            else:
                self._do(action)

    def _begin(self, step):
        if self.d:
            self._all_said()
        words = step.split()[1:] if step.startswith("with") else []
        alone, self.options = arguments_of(words)
        self.flash = FailingFlash(self.options.pop("blocks", 8))
        assert not [word for word in alone if word not in _BEGINNINGS], step
        self.store = KeepingStore() if "store" in alone else None
        self.front = simple.MQTTClient if "simple" in alone else None
        self.front = Robust if "robust" in alone else self.front
        self.has_journal = "journal" in alone or "journal" in self.options
        self.is_grouping = self.options.pop("journal", "") == "group"  # commit
        self._client("clean" in alone, "offline" not in alone)

    def _client(self, clean=False, is_connected=False):
        if self.has_journal:
            self.options["store"] = self.flash.journal(group_commit=self.is_grouping)
        elif self.store:
            self.options["store"] = self.store
        options = dict(self.options, front=self.front, is_queueing=self.is_queueing)
        self.d = self.dialogue(clean, is_connected, **options)
        self.dropped = self.d.watch_drops() if self.hears_drops else []
        self.streams = []  # that others follow as sockets
        self.oversize = []

    def _expect(self, call, wanted):
        if wanted.endswith(" s"):  # so long it takes
            wanted, _, seconds = wanted[:-2].rpartition(" in ")
            start_ms = self.d.clock.now_ms
            self._expect(call, wanted)
            late_ms = self.d.clock.now_ms - start_ms - float(seconds) * 1000
            assert 0 <= late_ms <= 20, late_ms
            return
        name, _, text = wanted.partition(" ")
        if name.isupper() or name.endswith(("Error", "Exception", "Iteration", "Interrupt")):
            error = error_of(call)
            if name.isupper():
                assert isinstance(error, MQTTError), error
                assert error.code == getattr(umqtt31, name), error
            else:
                assert isinstance(error, eval(name)), error
            if type(error) is MQTTError and error.code != umqtt31.NETWORK:
                # It is no error of the system's.
                assert not error.errno and "Errno" not in str(error), error
            if text and text[0] != '"':
                number, _, text = text.partition(" ")
                given = error.errno if name.isupper() else error.args[0]
                assert given == (getattr(errno, number, None) or int(number, 0)), given
            assert text.strip('"') in str(error), error
        else:
            result = call()
            values = [value_of(word) for word in wanted.split()]
            if isinstance(result, list):
                assert result == values, result
            else:
                assert [result] == values, result

    def _do(self, action):
        """-> what the client's method returned, if it is a step that calls one."""
        if action[0] == "(":
            return self._wait(action.strip("()").split())
        name, _, rest = action.partition(" ")
        method = getattr(self, "do_" + name.rstrip(":").lower(), None)
        if method:
            return method(rest)
        if name in _STREAM:
            attribute, value = _STREAM[name]
            if rest:
                value = OSError(int(rest)) if name == "broken" else value_of(rest)
            return setattr(self.d.stream, attribute, value)
        return self._ask(name, rest)

    def _wait(self, words):
        seconds = float(words[0])
        if words[-1] == "asleep":
            self.d.clock.sleep_ms(int(seconds * 1000 + 0.5))
        else:
            self.d.wait(seconds)

    def _hook(self, text, keep):
        """-> a hook of the client that calls `keep` and then plays the steps of the text."""

        def hook(*given):
            payload = keep(*given)
            for steps in text.split(" | ") if text else ():
                only = ""
                if steps.startswith('"'):
                    only, _, steps = steps.partition(": ")
                if not only or payload == value_of(only):
                    for step in steps.split("; "):
                        self.play(step)

        return hook

    def _ask(self, name, rest):
        """Call what the client has under this name, or compare it."""
        first, dot, rest_of_name = name.partition(".")
        is_of_message = first == "message"
        value = self.message if is_of_message else self.d.client
        for part in (rest_of_name if is_of_message else name).split("."):
            value = getattr(value, part)
        alone, named = arguments_of(rest.split())
        if callable(value):
            return self._call(name, value, alone, named)
        assert [value] == alone, value

    def _call(self, name, method, alone, named):
        return method(*alone, **named)

    def _items(self, text):
        return [] if text == "nothing" else items_of(text, self.level)

    def _packets(self, text):
        return [self._packet(words) for words in self._items(text)]

    def _packet(self, words):
        start, colon, end = words[-1].partition(":")
        if colon and (start + end).isdigit():  # a part of it
            return self._packet(words[:-1])[int(start or 0) : int(end) if end else None]
        return self._connect_packet(words) if words[0] == "CONNECT" else packet_of(words)

    def _connect_packet(self, words):
        """CONNECT as this client sends it, or with these flags, keep alive and fields."""
        alone, named = arguments_of(words[1:])
        if not alone or alone[0] == "clean":
            return self.d.connect_packet(bool(alone))
        client_id = named.pop("id", b"dev")
        if isinstance(client_id, str):
            client_id = client_id.encode()
        if named:
            named = {"properties": wire.properties(**named)}
        return wire.connect(client_id, *alone, level=self.level, **named)

    def do_stream(self, text):
        self._all_said()
        self.d.stream = self.d.make_stream(**arguments_of(text.split())[1])

    def do_socket(self, text):
        before = self.d.stream
        if before and before not in self.d.sockets:
            self.do_c("nothing")
            self.streams.append(before)  # what it is to be asked may still come
        self.d.stream = self.d.make_stream(**arguments_of(text.split())[1])
        self.d.sockets.append(self.d.stream)

    def do_unreachable(self, text):
        self.d.unreachable = int(text)

    def do_connections(self, text):
        """So many were opened, or tried to be."""
        assert self.d.opened == int(text), self.d.opened

    def do_open(self, text):
        words, named = arguments_of(text.split())
        stream = self.d.stream
        if stream and not (self.d.sockets or stream.is_closed):
            named.setdefault("stream", stream)
        return self.d.client.connect("clean" in words, **named)

    def do_set(self, text):
        name, value = text.split(" ", 1)
        owner = self.d.client
        for part in name.split(".")[:-1]:
            owner = getattr(owner, part)
        setattr(owner, name.split(".")[-1], value_of(value))

    def do_c(self, text):
        is_mixed = text.endswith(" mixed")
        sent = self.d.take_packets()
        wanted = []
        for words in self._items(text[:-6] if is_mixed else text):
            one = self._packet([word for word in words if word != "dup?"])
            # "dup?": the standard leaves it to the client.
            marked = bytes((one[0] | 8,)) + one[1:]
            wanted.append(marked if "dup?" in words and marked in sent else one)
        if is_mixed:
            sent, wanted = _by_kind(sent), _by_kind(wanted)
        assert b"".join(sent) == b"".join(wanted), "sent %r\nexpected %r" % (sent, wanted)

    def do_b(self, text):
        reply, _, request = text.partition(" to ")
        if request:
            request = b"".join(self._packets(request))
            for piece in self._packets(reply) or [b""]:
                self.d.stream.answer(request, piece)
                request = b""  # the others come at once
        else:
            self.d.b2c(*self._packets(text))

    def do_feed(self, text):
        self.d.stream.feed(*self._packets(text))

    def do_a(self, text):
        self.hears = True
        wanted = []
        for words in self._items(text):
            alone, named = arguments_of(words)
            payload = alone[0] if alone else b"x"
            topic = named.get("topic", b"t")
            topic = topic if isinstance(topic, bytes) else str(topic).encode()
            flags = [named.get(one, 0) for one in ("qos", "retain", "dup")]
            wanted.append(tuple([topic, payload] + flags))
        got = self.d.take_messages()
        assert got == wanted, "got %r\nexpected %r" % (got, wanted)

    def do_on_message(self, text):
        """What the handler does: steps, for all messages or those with a payload."""

        def keep(message):
            self.message = message
            self.d.keep(message)
            return message.payload

        self.d.client.on_message = self._hook(text, keep)

    def do_callback(self, text):
        def keep(topic, payload):
            self.d.messages.append((topic, payload, 0, 0, 0))
            return payload

        self.d.client.set_callback(self._hook(text, keep))

    def do_on_drop(self, text):
        self.d.client.on_drop = self._hook(text, lambda *given: self.dropped.append(given))

    def do_on_oversize(self, text):
        self.d.client.on_oversize = self._hook(text, lambda *given: self.oversize.append(given))

    def do_oversize(self, text):
        """on_oversize was told just these lengths of topic and payload since the last look."""
        told = [(int(words[0]), int(words[1])) for words in self._items(text)]
        assert self.oversize == told, self.oversize
        self.oversize[:] = []

    def do_refuse(self, text):
        self.message.refuse(value_of(text))

    def do_copy(self, text):
        """-> how many bytes of a part of the message a buffer of dots took, and the buffer."""
        name, *which, size = text.split()
        buf = bytearray(b"." * int(size))
        return [getattr(self.message, name + "_into")(*map(int, which), buf), bytes(buf)]

    def do_no_memory(self, text):
        """The library gets no buffer of so many bytes, or more, in this step; or no copy."""
        least, _, step = text.partition(": ")
        least, _, kind = least.partition(" ")
        with NoMemory(int(least), bytes if kind else bytearray):
            return self._do(step)

    def do_unrecorded(self, text):
        """The store cannot record this in this step."""
        name, _, step = text.partition(": ")
        store, record = self.d.store, getattr(self.d.store, name)
        setattr(store, name, lambda *_: self.do_raise("MQTTError(umqtt31.JOURNAL)"))
        try:
            return self._do(step)
        finally:
            setattr(store, name, record)

    def do_on_put(self, text):
        """What the store does first when a message is put into it."""
        self.store.before_put = self._hook(text, lambda: None)

    def do_try(self, step):
        """It may raise what the library raises."""
        try:
            self._do(step)
        except (MQTTError, ValueError, TypeError):
            pass

    def do_all_arrive(self, text):
        """All that is left arrives on a new connection, each message once."""
        d = self.d
        if d.stream:
            d.stream.take()
        d.connect(False, self._is_present(text.split()))
        count = d.client.inflight + d.client.queued
        ids = []
        for _ in range(count):
            sent = [one[2] for one in d.take_publishes()]
            ids += sent
            d.b2c(*[wire.puback(packet_id) for packet_id in sent])
        assert len(set(ids)) == len(ids) == count, (ids, count)
        assert d.client.inflight == d.client.queued == 0

    def do_on_write(self, text):
        """What is done in the stream before each write()."""
        self._hook_writes(self._hook(text, lambda: None), lambda: None)

    def do_on_written(self, text):
        """What is done in it when it took something."""
        self._hook_writes(lambda: None, self._hook(text, lambda: None))

    def _hook_writes(self, before, behind):
        stream = self.d.stream
        stream.hooks = before, behind
        take = type(stream).write

        def write(buf, at, n):
            stream.hooks[0]()
            n = take(stream, buf, at, n)
            stream.hooks[1]()
            return n

        stream.write = write

    def do_raise(self, error):
        error = eval(error)
        raise error if isinstance(error, Exception) else error("of the script")

    def do_flash(self, text):
        words = text.split()
        self.flash.failures = int(words[1]) if words[1:] else -(words == ["fails"])
        self.flash.readable_from = 0
        if words == ["forgets"]:
            self.flash.forget()

    def do_room(self, text):
        """The store takes so many messages."""
        self.store.slots = int(text)

    def do_told(self, text):
        """umqtt.robust's delay() and log() were told just this since the last look."""
        told = self.d.client.told
        assert told == [value_of(word) for word in text.split(", ") if word != "nothing"], told
        told[:] = []

    def do_spoil(self, text):
        at = bytes(self.flash.data).find(value_of(text))
        assert at >= 0
        self.flash.data[at] ^= 0x04

    def do_dropped(self, text):
        wanted = []
        for words in self._items(text):
            reason = value_of(words[1])
            wanted.append((int(words[0]), getattr(umqtt31, words[1], reason)))
        assert self.dropped == wanted, self.dropped
        self.dropped[:] = []

    def do_publish(self, text):
        ids = []
        for words in items_of(text, self.level):
            alone, named = arguments_of(words)
            ids.append(self.d.publish(*alone, **named))
        return ids[0] if len(ids) == 1 else ids

    def do_subscribe(self, text):
        words = text.split()
        if ":" in words[0] and words[0][-1].isdigit():
            pairs = [word.rsplit(":", 1) for word in words]
            return self.d.client.subscribe([(bytes_of(name), int(qos)) for name, qos in pairs])
        alone, named = arguments_of(words)
        return self.d.client.subscribe(*alone, **named)

    def do_unsubscribe(self, text):
        names = [bytes_of(word) for word in text.split()]
        return self.d.client.unsubscribe(names if names[1:] else names[0])

    def do_lost(self, _):
        self.d.lose()

    def do_connect(self, text):
        self._all_said()
        words, said = arguments_of(text.split())
        said = wire.properties(**said) if said else b""
        old = self.d.stream
        self.d.connect("clean" in words, self._is_present(words), said)
        assert old is None or old.is_closed, "the old stream is open"

    def do_reconnect(self, text):
        """reconnect() until it succeeds; with a number, or connected: once -> what it returns."""
        words = text.split()
        if self.front is Robust or self.d.client.is_connected or text.isdigit():
            return self.d.client.reconnect(*[int(word) for word in words])
        self._all_said()
        self.d.reconnect("clean" in words, self._is_present(words))

    def _is_present(self, words):
        assert not [word for word in words if word not in ("clean", "present", "absent")], words
        return True if "present" in words else False if "absent" in words else None

    def do_reset(self, text):
        """The board begins anew, not connected; what its journal has is all that it knows."""
        self._all_said()
        self.options.update(arguments_of(text.split())[1])
        self._client()

    def do_closed(self, _):
        assert self.d.stream.is_closed

    def do_end(self, _):
        self._all_said()
        if self.hears:
            self.do_a("nothing")

    def _all_said(self):
        if self.d.stream and self.d.stream not in self.d.sockets:
            for stream in self.streams + [self.d.stream]:
                assert stream.has_answered(), "an answer was not asked for"
            assert not [stream.sent for stream in self.streams if stream.sent]
            self.do_c("nothing")
