"""Command messages, `[#ID ]WORD[ ARGUMENT]`, and the answers to those with an id.

`ID` is 1 to 16 characters that the sender chose.  Allocates: commands are rare.
"""

LONGEST = 64
_LONGEST_ID = 16
# Answers that wait for room in the client's queue: with so many, no command is obeyed; with
# so many it is not even answered.  One poll() brings 64 messages at most.
_MANY_ANSWERS = 8
_MOST_ANSWERS = 64


class Commands:
    """Reads commands; their answers, for `topic`, go to the list `outbox`.

    `obey(word, argument)` does what one says, or returns why not; `log` is as print.
    """

    def __init__(self, obey, log, topic, outbox):
        self._obey = obey
        self._log = log
        self._topic = topic
        self._outbox = outbox

    def take(self, message):
        """A message of the command topic came."""
        if message.retain:
            # It would come again with every connection: a retained `reset` for ever.
            self._log("command ignored: it is retained")
        elif message.payload_len > LONGEST:
            self._answer(parse(message.payload[:LONGEST])[0], "longer than %d bytes" % LONGEST)
        else:
            name, word, argument = parse(message.payload)
            if name and len(self._outbox) >= _MANY_ANSWERS:
                # What nobody would hear of is not done: the sender tries again.
                self._answer(name, "too many at once")
            else:
                self._answer(name, self._obey(word, argument), word, argument)

    def _answer(self, name, why, word="", argument=""):
        if why:
            self._log("command refused:", why)
        else:
            self._log("command", word, argument)
        if name and len(self._outbox) < _MOST_ANSWERS:
            text = "refused: " + why if why else "done"
            self._outbox.append((self._topic, ("%s %s" % (name, text)).encode()))


def publish_all(client, outbox):
    """Publish and forget what finds room in the queue; the rest stays for the next time."""
    try:
        while outbox:
            topic, answer = outbox[0]
            client.publish(topic, answer, False, 1)
            outbox.pop(0)
    except OSError:
        pass


def parse(payload):
    """bytes -> (id or "", word or "", argument or ""), str; a word that nobody knows is
    the caller's question."""
    try:
        words = str(payload, "utf-8").split()
    except ValueError:  # UnicodeError is one
        return "", "", ""
    name = ""
    if words and words[0][0] == "#":
        name = words.pop(0)[1:]
        if not 0 < len(name) <= _LONGEST_ID:
            return "", "", ""
    if len(words) > 2:
        return name, "", ""
    return name, words[0] if words else "", words[1] if len(words) > 1 else ""


def number(text):
    """A whole number without sign, or None."""
    return int(text) if 0 < len(text) <= 9 and all(c in "0123456789" for c in text) else None
