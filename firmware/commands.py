"""Command messages, `[#ID ]WORD[ ARGUMENT]`, and the answers to those with an id.

`ID` is 1 to 16 characters that the sender chose.  Where the settings ask for it, a command
is signed: `PROOF NUMBER COMMAND`.  Allocates: commands are rare.
"""

LONGEST = 64
_PROOF_AND_NUMBER = 32 + 1 + 15 + 1
_LONGEST_ID = 16
# Answers that wait for room in the client's queue.  From the first number on commands are
# refused, from the second on not even answered.  One poll() brings 64 messages at most.
_MANY_ANSWERS = 8
_MOST_ANSWERS = 64
_TOO_LARGE = 260, 0x95  # codes of MQTTError: for the client's buffer, for the broker


class Commands:
    """Reads commands; their answers, for `topic`, go to the list `outbox`.

    `obey(word, argument)` does what one says, or returns why not; `log` is as print.
    `signed`: a Signed where commands have to be; `forged` counts those that it refused.
    """

    def __init__(self, obey, log, topic, outbox, signed=None, forged=0):
        self._obey = obey
        self._log = log
        self._topic = topic
        self._outbox = outbox
        self._signed = signed
        self.forged = forged

    def take(self, message):
        if message.retain:
            # It comes again with every connection: a retained `reset` would never end.
            self._log("command ignored: it is retained")
        elif message.payload_len > LONGEST + (_PROOF_AND_NUMBER if self._signed else 0):
            self._answer(parse(message.payload[:LONGEST])[0], "longer than %d bytes" % LONGEST)
        else:
            text = message.payload
            if self._signed:
                text, why = self._signed.open(text)
                if why:
                    self.forged += 1
                    return self._answer(parse(text)[0], why)
            name, word, argument = parse(text)
            if name and len(self._outbox) >= _MANY_ANSWERS:
                # A command without room for its answer is not done.  The sender tries again.
                self._answer(name, "too many at once")
            else:
                self._answer(name, self._obey(word, argument), word, argument)
        return None

    def _answer(self, name, why, word="", argument=""):
        if why:
            self._log("command refused:", why)
        else:
            self._log("command", word, argument)
        if name and len(self._outbox) < _MOST_ANSWERS:
            text = "refused: " + why if why else "done"
            answer = ("%s %s" % (name, text)).encode()
            if self._signed:
                answer += b" " + self._signed.proof(self._topic, answer)
            self._outbox.append((self._topic, answer))


class Signed:
    """Opens signed commands for `topic`: `PROOF NUMBER COMMAND`.

    `key` is the fleet's, bytes.  NUMBER is larger than in all commands before; `state`, a
    state.State, keeps the last one over resets.
    """

    def __init__(self, key, topic, state):
        import signature  # here, as others need no memory for it

        self._key = key
        self._topic = topic
        self._state = state
        self._signature = signature

    def open(self, payload):
        """-> (command, why it is refused or None)."""
        shown, _, said = payload.partition(b" ")
        proof = self._signature.proof(self._key, self._signature.COMMAND, self._topic, said)
        if not self._signature.is_same(proof, shown):
            return payload, "not signed with this fleet's key"
        digits, _, command = said.partition(b" ")
        if not digits.isdigit() or int(digits) <= self._state.commanded:
            return command, "its number is not above the last one"
        # Saved first, so that nobody can repeat it after a reset.
        self._state.commanded = int(digits)
        try:
            self._state.save()
        except OSError as error:
            return command, "flash: %s" % error
        return command, None

    def proof(self, topic, answer):
        return self._signature.proof(self._key, self._signature.ANSWER, b"", topic, answer)


def publish_all(client, outbox):
    """Publish and forget what finds room in the queue, and forget what never can; the rest
    stays for the next time."""
    while outbox:
        topic, answer = outbox[0]
        try:
            client.publish(topic, answer, False, 1)
        except OSError as error:
            if getattr(error, "code", 0) not in _TOO_LARGE:
                return
        outbox.pop(0)  # an answer that never fits would block all others


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
