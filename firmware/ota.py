"""Takes an update that comes over MQTT in pieces, checks it, and stages it.

A bundle (docs/guides/updates.md) grows in a file of its own name, so that a reset costs the
piece under way and no more.  Nothing of it is used before its HMAC with the fleet's key
was right; then it is staged as update.py has it, with the old files beside it for the
way back.  Each answer carries a proof by that key, over the nonce of the offer that it
answers.  Allocates: updates are rare.
"""

import binascii
import hashlib
import os
import time

import signature
import update

_OFFER = 79  # "O": id, size of the bundle, nonce
_CHUNK = 67  # "C": id, offset, data
_ID_BYTES = 8
_OFFER_BYTES = 21
_HEAD_BYTES = 13  # of a chunk
_FOLDER = "incoming"
_MAC_BYTES = 32
_PIECE = 128  # small, as the heap may be fragmented
_LONGEST_LINE = 256
# The text of an answer may have this many bytes more than a chunk's data: the chunk's head (13)
# less "/answer" (7) and the proof with its blank (33).
_MORE_BYTES = 13 - 7 - 33
# In littlefs a new folder takes two blocks, and a rename may take one for a moment.
_SPARE_BLOCKS = 16
_MOST_ANSWERS = 64  # that may wait for room, with those of commands.py
_QUIET_MS = 30000  # after this time without a chunk another bundle may come
_RELEASE = "release.txt"
_STARTS = ("boot", "main", "update")
_NO_NAMES = {"", ".", ".."}  # with them a path would lead elsewhere


class Refused(Exception):
    """The bundle cannot be taken; the text says why."""


class Updates:
    """`key` is the fleet's, hex; `most_bytes` what a chunk may have; `feed` keeps the
    watchdog quiet; `log` as print; `clock` as in node.Node.

    Answers go to `outbox`, a list of (topic, answer).  `is_complete`: stage() is wanted.
    `is_on_trial`: the files are new, and the broker was not reached yet.
    """

    def __init__(self, key, board, most_bytes, feed, log, clock=time):
        self._key = binascii.unhexlify(key)
        self._board = board
        self._most_bytes = most_bytes
        self._feed = feed
        self._log = log
        self._clock = clock
        self._topic = self._outbox = None  # see attach()
        self._id = None
        self._nonce = b""  # of the offer that was accepted, hex
        self._size = 0
        self._chunk_at = None  # ticks of the last one, while one is under way
        self.is_on_trial = update.is_on_trial()
        # The id of the update that is staged or on trial.
        self._pending = None
        if self.is_on_trial:
            self._pending, _ = _id_and_nonce(update.text(update.PREVIOUS + "/id"))
        self.is_complete = False

    def attach(self, topic, outbox):
        """The node's own topic for answers, and its list."""
        self._topic = topic
        self._outbox = outbox

    def take(self, payload, is_retained=False):
        """An offer or a chunk came."""
        if is_retained:
            # It comes again with every connection, and would replace the bundle under way.
            return self._log("update ignored: it is retained")
        if len(self._outbox) >= _MOST_ANSWERS:
            return None  # there is no room for the answer, and the rollout sends it again
        name = binascii.hexlify(payload[1 : 1 + _ID_BYTES]).decode()
        number = int.from_bytes(payload[9:13], "big")
        try:
            if len(payload) == _OFFER_BYTES and payload[0] == _OFFER:
                nonce = binascii.hexlify(payload[13:])
                if why := self._why_not(name):
                    return self._say(why, name, nonce)
                self._offer(name, number, nonce)
            elif len(payload) > _HEAD_BYTES and payload[0] == _CHUNK and name == self._id:
                self._append(number, payload[_HEAD_BYTES:])
            else:
                return None  # an unknown message, or a chunk of another bundle
            have = _size(self._path())
            self.is_complete = have == self._size
            self._say("have %d of %d" % (have, self._most_bytes))
        except (Refused, OSError) as error:
            self._refuse(_reason(error))
        return None

    def stage(self):
        """Check the complete bundle and stage it -> is a reset wanted?"""
        self.is_complete = False
        try:
            with open(self._path(), "rb") as file:
                self._check_mac(file)
                about = "%s %s" % (self._id, self._nonce.decode())
                _stage(file, self._size, self._board, about, self._feed)
            # From here on the next start runs the new files.
            os.rename(update.FOLDER + "/list", update.READY)
        except (Refused, OSError, ValueError, MemoryError) as error:
            # Not raised: each offer would reset the board.
            why = _reason(error)
        else:
            self._forget()
            self._say("staged")
            self._pending, self._id = self._id, None
            return True
        update.remove_folder(update.FOLDER)
        update.remove_folder(update.PREVIOUS)
        self._refuse(why)
        return False

    @property
    def is_receiving(self):
        """Is a bundle on its way?"""
        return self._id is not None

    def told_at_start(self):
        """What became of the last update, once the broker is reached; ends its trial."""
        if self.is_on_trial:
            update.remove_folder(_FOLDER)  # if a power cut left it
            self._say("running", *_id_and_nonce(update.confirm()))
            self.is_on_trial, self._pending = False, None
        if update.is_there(update.ROLLED_BACK):
            name, nonce = _id_and_nonce(update.text(update.ROLLED_BACK))
            if name == _running():
                os.remove(update.RUNNING)  # a power cut ended the confirmation
            self._say("rolled back", name, nonce)
            os.remove(update.ROLLED_BACK)

    def takes_back(self):
        """The broker was not reached in time: if an update is on trial, go back -> is it?"""
        if not self.is_on_trial:
            return False
        self.is_on_trial = False
        update.go_back()
        return True

    def _why_not(self, name):
        # -> the answer to an offer that is not accepted now, else None.
        if name == _running():
            return "running"
        if name == self._pending:
            return "staged"
        if self._pending:
            return "refused: the last update is not over"
        if name != self._id and self._is_busy():
            return "busy"
        return None

    def _is_busy(self):
        # Else two rollouts would replace each other's bundle in turn.
        if self._id is None or self._chunk_at is None:
            return False
        quiet_ms = self._clock.ticks_diff(self._clock.ticks_ms(), self._chunk_at)
        return 0 <= quiet_ms < _QUIET_MS  # below 0: the ticks went round

    def _offer(self, name, size, nonce):
        update.remove_folder(update.FOLDER)  # a reset may have left it
        update.make_folder(_FOLDER)
        if name != self._id:
            self._chunk_at = None
        self._id, self._size, self._nonce = name, size, nonce
        for other in os.listdir(_FOLDER):
            if other != name or _size(self._path()) > size:
                os.remove(_FOLDER + "/" + other)
        space = os.statvfs("/")
        # Room for the bundle, the staged files and the old ones.
        if 3 * (size - _size(self._path())) > space[0] * (space[3] - _SPARE_BLOCKS):
            raise Refused("no room for %d bytes" % size)

    def _append(self, offset, data):
        # A repeated chunk, or one out of order, changes nothing.
        if offset == _size(self._path()) and offset + len(data) <= self._size:
            with open(self._path(), "ab") as file:
                file.write(data)
            self._chunk_at = self._clock.ticks_ms()

    def _check_mac(self, file):
        if self._size < _MAC_BYTES:
            raise Refused("too short")
        own = signature.Signature(self._key)
        for data in _pieces(file, self._size - _MAC_BYTES, self._feed):
            own.update(data)
        if not signature.is_same(own.digest(), file.read(_MAC_BYTES)):
            raise Refused("wrong signature")
        file.seek(0)

    def _refuse(self, why):
        self._say("refused: " + why)
        self._forget()
        self._id = None
        self.is_complete = False

    def _forget(self):
        if self._id:
            try:
                os.remove(self._path())
            except OSError:
                pass

    def _path(self):
        return _FOLDER + "/" + self._id

    def _say(self, text, name=None, nonce=None):
        name, nonce = name or self._id, nonce or self._nonce
        # settings.py makes sure that an answer with its proof fits where a chunk does.
        said = ("%s %s" % (name, text)).encode()[: self._most_bytes + _MORE_BYTES]
        proof = signature.proof(self._key, signature.ANSWER, nonce, self._topic, said)
        answer = self._topic, said + b" " + proof
        if answer not in self._outbox:  # a broker may have kept hundreds of the same offer
            self._outbox.append(answer)
        if not text.startswith("have"):
            self._log("update", name, text)


def _reason(error):
    for kind, text in ((Refused, "%s"), (OSError, "flash: %s"), (MemoryError, "heap: %s")):
        if isinstance(error, kind):
            return text % error
    return "manifest: %s" % error


def _stage(file, size, board, about, feed):
    # Write the new files and their list, and the old ones and theirs.  Nothing is decided yet.
    new = _read_manifest(file, size, board, feed)
    update.remove_folder(update.FOLDER)
    update.remove_folder(update.PREVIOUS)
    update.make_folder(update.FOLDER)
    update.make_folder(update.PREVIOUS)
    for number, (path, length) in enumerate(new):
        feed()
        old = _size(path) if update.is_there(path) else None
        if length == old and length is not None and _has_next(file, path, feed):
            new[number] = None  # the same file; flash may have no room for two more copies
            continue
        if old is not None:
            with open(path, "rb") as source:
                _copy(source, "%s/%d" % (update.PREVIOUS, number), old, feed)
        if length is not None:
            _copy(file, "%s/%d" % (update.FOLDER, number), length, feed)
        new[number] = path, length is None, old is None
    if file.tell() != size - _MAC_BYTES:
        raise Refused("damaged before it was signed")
    if os.statvfs("/")[3] < _SPARE_BLOCKS // 2:
        raise Refused("no room to move its files")
    update.write(update.PREVIOUS + "/id", about)
    _write_list(update.PREVIOUS + "/list", new, 2)
    _write_list(update.FOLDER + "/list", new, 1)


def _write_list(target, moves, is_gone):
    # Of each move (path, does it go?, does it go on the way back?) the line that update.py reads.
    with open(target, "w") as file:
        end = ""
        for number, move in enumerate(moves):
            if move:
                line = "- %s" % move[0] if move[is_gone] else "%d %s" % (number, move[0])
                file.write(end + line)
                end = "\n"


def _read_manifest(file, size, board, feed):
    # -> [(path, bytes, or None to remove it)]
    new = []
    for line in _lines(file, size):
        kind, _, rest = line.partition(" ")
        if kind == "board" and rest != board:
            raise Refused("made for %s" % rest)
        if kind == "release" and int(rest) <= _release():
            raise Refused("release %s is not newer than %d" % (rest, _release()))
        if kind in ("+", "=", "-"):
            about, _, path = rest.partition(" ")
            if not _NO_NAMES.isdisjoint(path.split("/")):
                raise Refused("no path: %s" % line)
            if kind == "=":
                if _hash(path, feed) != about:
                    raise Refused("made for other files: %s" % path)
            elif _is_kept(path):
                raise Refused("%s changes by cable only" % path)
            else:
                new.append((path, int(about) if kind == "+" else None))
    return new


def _lines(file, size):
    # Yields line by line, as a fragmented heap may have no room for a whole manifest.
    if file.read(len(signature.BUNDLE)) != signature.BUNDLE:
        raise Refused("no bundle of this version")
    left = int.from_bytes(file.read(4), "big")
    if left > size:
        raise ValueError("it is longer than the bundle")
    while left > 0:
        line = file.readline(min(left, _LONGEST_LINE))
        left -= len(line)
        if left and line[-1:] != b"\n":
            raise ValueError("a line is too long")
        yield line.decode().rstrip("\n")


def _is_kept(path):
    # An update must not change what takes it back, nor bring a module in place of one that
    # is needed for that.
    names = path.split("/")
    if names[0] == "lib":
        names.pop(0)
    name = names[0].split(".")[0] if names else ""
    is_needed = type(getattr(update, name, None)) is type(os)
    return is_needed or name in _STARTS or path == "settings.json"


def _release():
    try:
        return int(update.text(_RELEASE))
    except (OSError, ValueError):
        return 0


def _running():
    # -> the id of the confirmed update whose files run, or None.
    try:
        return _id_and_nonce(update.text(update.RUNNING))[0]
    except OSError:
        return None


def _id_and_nonce(text):
    # Reads what _stage() wrote: id of the bundle, and nonce of the rollout that brought it.
    name, _, nonce = text.partition(" ")
    return name, nonce.encode()


def _hash(path, feed):
    if not update.is_there(path):
        return None
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for data in _pieces(file, _size(path), feed):
            digest.update(data)
    return binascii.hexlify(digest.digest()).decode()


def _pieces(file, left, feed):
    while left > 0:
        data = file.read(min(left, _PIECE))
        if not data:
            raise Refused("too short")
        yield data
        left -= len(data)
        feed()


def _has_next(file, path, feed):
    # Are the next bytes of the bundle those of this file?  If not, they are still to be read.
    start = file.tell()
    with open(path, "rb") as there:
        while data := there.read(_PIECE):
            feed()
            if file.read(len(data)) != data:
                file.seek(start)
                return False
    return True


def _copy(source, target, left, feed):
    with open(target, "wb") as file:
        for data in _pieces(source, left, feed):
            file.write(data)


def _size(path):
    return os.stat(path)[6] if update.is_there(path) else 0
