"""Plays scripts of captures: who says what to whom, and what the audit has to say of it.

`host_tests/client/dialogues/README.md` describes the notation.
"""

import re

from host_tests.client import wire
from host_tests.client.notation import arguments_of, bytes_of, items_of, packet_of
from host_tests.fleet.captures import C2S, S2C, Capture, rows
from host_tests.fleet.simulate import tcp
from host_tests.standin import packets

_FLAGS = {"SYN": tcp.SYN, "FIN": tcp.FIN | tcp.ACK, "RST": tcp.RST | tcp.ACK}
_THERE = bytes((10, 0, 0, 2))
_BREACH = "requirement", "by", "packet_id", "sure"
_FINDING = "finding", "client_id", "about", "count", "sure"
_LOSS = "sure", "client_id", "published_by"
_EVERY = re.compile(r" (packets )?every ([\d.]+) s$")


class Trace:
    """A capture in the making, and what its audit has to say."""

    def __init__(self):
        self.capture = Capture()
        self._talks = {}
        self._ids = {}  # of the last message of a connection and direction
        self._published = {}  # time: the id and payload
        self._said = []
        self._tables = {}  # name: the rows that it has
        self._exempt = ()

    def play(self, step):
        """Play one step; `end`: compare what the audit says with what the script said."""
        if step == "end":
            self._audit()
        elif step == "nothing":
            pass
        elif step[0] == "(":  # the next frame comes so long after the last
            self.capture.now += round((float(step[1:-3]) - 0.001) * 1e6)
        elif step.startswith("audit: "):
            self._said += _said(step)
        elif step.startswith("exempt "):
            self._exempt = tuple(step.split()[1:])
        elif (table := step.split()[0])[-1] == ":":
            self._tables[table[:-1]] = [arguments_of(words)[1] for words in _said(step)]
        elif step.endswith(" missing"):
            count = len(self.capture.frames)
            self.play(step.removesuffix(" missing"))
            del self.capture.frames[count:]
        else:
            name, does, *rest = step.split(None, 2)
            self._do(name, does, *rest)

    def _do(self, name, does, rest=""):
        if does == "connects":
            return self._connect(name, rest)
        if does in ("is", "opens"):
            level = arguments_of(rest.split())[1].get("level", 4)
            self._talks[name] = self.capture.middle(name.encode(), level)
            return does == "opens" and self._talks[name].open()
        talk = self._talks[name]
        if does in ("<", ">"):
            for words in items_of(rest, talk.level):
                self._send(talk, C2S if does == ">" else S2C, words)
        elif does in ("<<", ">>"):
            self._messages(talk, C2S if does == ">>" else S2C, rest)
        elif does == "subscribes":
            *packet_id, one = rest.split()
            topic, qos = one.split(":")
            talk.subscribe(bytes_of(topic), int(qos), *map(int, packet_id))
        elif does == "releases":
            talk.release(C2S, int(rest))
        else:
            assert does == "pings", does
            talk.ping()

    def _connect(self, name, rest):
        asked, _, answered = rest.partition("answered ")
        words, options = arguments_of(asked.split())
        assert set(words) <= {"clean", "kept", "present", "there"}, words
        flags = {"clean": "kept" not in words, "present": "present" in words}
        flags |= {"server": _THERE} if "there" in words else {}
        level, keep_alive_s = options.pop("level", 4), options.pop("keepalive", 60)
        said = options, arguments_of(answered.split())[1]
        self._talks[name] = self.capture.connection(
            name.encode(), level, keep_alive_s=keep_alive_s, said=said, **flags
        )

    def _send(self, talk, direction, words, after_ms=1):
        if words[0] in _FLAGS:
            return talk.segment(direction, b"", _FLAGS[words[0]], after_ms)
        wire.speak(talk.level)
        if words[0] == "CONNECT":
            packet = packets.connect(words[1].encode(), level=talk.level)
        else:
            packet = packet_of(words)
        talk.send(direction, packet, after_ms)
        if words[0] == "PUBLISH" and direction == C2S:
            self._published.setdefault(self.capture.now, words[1:])

    def _messages(self, talk, direction, rest):
        """Messages with their answers, and what they are passed on to with `>> name`."""
        every = _EVERY.search(rest)
        pause_ms = round(float(every[2]) * 1000) if every else 1
        answer_ms = pause_ms if every and every[1] else 1
        messages, _, heirs = _EVERY.sub("", rest).partition(" >> ")
        for words in items_of(messages, talk.level):
            self._exchange(talk, direction, words, pause_ms, answer_ms)
            for heir in heirs.split():
                self._exchange(self._talks[heir], S2C, words)

    def _exchange(self, talk, direction, words, pause_ms=1, answer_ms=1):
        qos = int(next((word[1] for word in words if re.fullmatch("q[012]", word)), 1))
        if qos and not words[0].isdigit():
            words = [str(self._ids.get((talk, direction), 0) + 1), *words]
        self._send(talk, direction, ["PUBLISH", *words], pause_ms)
        if qos:
            packet_id = self._ids[talk, direction] = int(words[0])
            if qos == 2:
                talk.release(direction, packet_id)
            else:
                talk.ack(1 - direction, 0x40, packet_id, answer_ms)

    def _audit(self):
        tables = self.capture.audit(self._exempt)
        found = [
            ["broken", *map(str, row), *detail.split()]
            for *row, detail in rows(tables["violations"], *_BREACH, "detail")
        ]
        for kind, ts, *more, why in rows(tables["losses"], "kind", "ts", *_LOSS, "evidence"):
            sent = self._published[round(ts.timestamp() * 1e6)]
            found.append([kind.replace("not_delivered", "lost"), *sent, *more, *why.split()])
        for *row, detail in rows(tables["findings"], *_FINDING, "detail"):
            found.append(["finding", *map(str, row), *detail.split()])
        for words in self._said:
            match = next((one for one in found if set(words) <= set(one)), None)
            assert match, (words, found)
            found.remove(match)
        assert not found, found
        for name, said in self._tables.items():
            found = tables[name].select(list(said[0]) if said else ["client_id"]).to_pylist()
            assert sorted(found, key=str) == sorted(said, key=str), (name, found)


def _said(step):
    said = items_of(step.partition(": ")[2], 4)
    return [words for words in said if words != ["nothing"]]
