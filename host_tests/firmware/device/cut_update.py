"""Cuts the power in an update at every flash operation, and at every pair of them.

Runs inside MicroPython, on its littlefs over a flash in RAM: `cut_update.py WAY UNIT
HEX_KEY`, with three files in the current folder, `old`, `new` (repr of {path: bytes}) and
`bundle`.  A run logs its flash operations.  What a cut leaves is what the operations
before it made, and nothing or half of the one under way; nothing depends on time.

Ways: "good" confirms the new firmware, and cuts begin with the first byte received; with
"silent" the new firmware never says a word, with "back" it decides to go back; their cuts
begin with the start that moves the files.  Prints the counts, or what is wrong, and where.
"""

import hashlib
import os
import sys

import update
from host_tests.standin.ramflash import RamFlash
from ota import Updates

BLOCK = 4096
BLOCKS = 40
CHUNK = 400
MOST_LIVES = 16  # of one run; more: it does not come to an end


class Wrong(Exception):
    pass


class Flash(RamFlash):
    """`log`: address, new bytes, and how much of the bundle was acknowledged before."""

    def __init__(self, data=None, acknowledged=0):
        super().__init__(BLOCKS, BLOCK, data and bytearray(data))
        self.log = []
        self.acknowledged = acknowledged
        self.hook = lambda at, after: self.log.append((at, after, self.acknowledged))


def read(path):
    """-> its bytes, None if it is not there."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


class Sweep:
    def __init__(self, way, unit, key, old, new, bundle):
        self.way, self.unit, self.key = way, unit, key
        self.old, self.new, self.bundle = old, new, bundle
        self.id = hashlib.sha256(bundle).digest()[:8]
        self.ended = {}  # states of which it is known that they end well
        self.runs = self.cuts = 0
        self.where = ()

    def mount(self, flash):
        os.umount("/")
        os.mount(os.VfsLfs2(flash, progsize=self.unit), "/")

    def first(self):
        """The flash before the first cut."""
        flash = Flash()
        os.VfsLfs2.mkfs(flash, progsize=self.unit)
        self.mount(flash)
        for path, data in self.old.items():
            if "/" in path and not update.is_there(path.split("/")[0]):
                os.mkdir(path.split("/")[0])
            with open(path, "wb") as file:
                file.write(data)
        if self.way != "good":
            self.mount(flash)
            self.live(flash)
        return bytes(flash.data)

    def run(self, data, acknowledged=0, is_last=False):
        """From a start with this flash to the decision -> the log."""
        flash = Flash(data, acknowledged)
        states = []
        for _ in range(MOST_LIVES):
            self.mount(flash)
            count = len(flash.log)
            update.finish()
            self.look()
            # Only a write brings to light what littlefs hides.
            if is_last and len(flash.log) > count:
                state = self.state(flash)
                if state in self.ended:
                    break
                states.append(state)
            if self.live(flash):
                break
        else:
            raise Wrong("no end")
        for state in states:
            self.ended[state] = True
        self.runs += 1
        return flash.log

    def state(self, flash):
        digest = hashlib.sha256(b"%d" % flash.acknowledged)
        folders = [""]
        while folders:
            folder = folders.pop()
            for name, kind, *_ in sorted(os.ilistdir("/" + folder)):
                path = folder + "/" + name
                digest.update(path.encode() + b"\0")
                if kind == 0x4000:
                    folders.append(path)
                else:
                    digest.update(hashlib.sha256(read(path)).digest())
        return digest.digest()

    def look(self):
        """All old or all new, and the new ones on trial or confirmed."""
        found = {path: read(path) for path in set(self.old) | set(self.new)}
        is_old, is_new = (
            all(data == files.get(path) for path, data in found.items())
            for files in (self.old, self.new)
        )
        if is_old == is_new:
            raise Wrong("neither all old nor all new")
        before, after = ({path.split("/")[0] for path in one} for one in (self.old, self.new))
        if is_old and any(map(update.is_there, after - before)):
            raise Wrong("a folder is left")  # imported in place of a module of its name
        if is_new and not update.is_on_trial() and not update.is_there(update.RUNNING):
            raise Wrong("new without trial")

    def live(self, flash):
        """One life of the firmware after boot.py -> did it say how the update ended?"""
        said = []
        updates = Updates(self.key, "desk", CHUNK, int, lambda *words: None)
        updates.attach(b"t", said)
        if update.is_on_trial() and self.way != "good":
            if self.way == "back":
                updates.takes_back()
            return False
        updates.told_at_start()
        if not said:
            updates.take(b"O" + self.id + len(self.bundle).to_bytes(4, "big") + b"8 bytes!")
        while said:
            word = said.pop(0)[1].decode().split(" ", 1)[1].rsplit(" ", 1)[0]
            if word == ("running" if self.way == "good" else "rolled back"):
                return True
            if not word.startswith("have"):
                raise Wrong(word)
            if self.receive(flash, updates, int(word.split()[1])):
                return False
        raise Wrong("said nothing")

    def receive(self, flash, updates, have):
        """So much is there; bring the next chunk -> is a reset wanted?"""
        if have < flash.acknowledged:
            raise Wrong("forgot what it had acknowledged")
        if have and read("incoming/" + self.id.hex()) != self.bundle[:have]:
            raise Wrong("another beginning")
        if updates.is_complete:
            flash.acknowledged = 0  # from here on it may be removed
            return updates.stage()
        flash.acknowledged = have
        chunk = self.bundle[have : have + CHUNK]
        updates.take(b"C" + self.id + have.to_bytes(4, "big") + chunk)
        return False

    def sweep(self):
        data = self.first()
        log = self.run(data)
        self.operations = len(log)
        for at, half, cut, acknowledged in cuts(data, log):
            self.where = at, half
            self.cuts += 1
            again = self.run(cut, acknowledged)
            for at_2, half_2, cut_2, acknowledged_2 in cuts(cut, again):
                if half_2 != half:
                    continue
                self.where = at, half, at_2, half_2
                self.cuts += 1
                self.run(cut_2, acknowledged_2, True)


def cuts(data, log):
    """(number, is the operation half done, flash, acknowledged) of each cut; the flash is valid
    until the next one.  Half an erase leaves zeros."""
    data = bytearray(data)
    for number, (at, after, acknowledged) in enumerate(log):
        yield number, False, data, acknowledged
        half = len(after) // 2
        data[at : at + half] = bytes(half) if len(after) == BLOCK else after[:half]
        yield number, True, data, acknowledged
        data[at : at + len(after)] = after


def main(way, unit, key):
    old, new = (eval(read(name)) for name in ("old", "new"))
    sweep = Sweep(way, int(unit), key, old, new, read("bundle"))
    try:
        sweep.sweep()
    except Wrong as error:
        print("wrong:", error, sweep.where)
        sys.exit(1)
    print(sweep.operations, "operations,", sweep.cuts, "cuts,", sweep.runs, "runs")


main(*sys.argv[1:])
