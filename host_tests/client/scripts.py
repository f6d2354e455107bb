"""Dialogues that are written as scripts: reads them, and gives each its player.

`dialogues/README.md` describes the notation.  What goes wrong is an AssertionError that names
the script and its line.  Runs under CPython and MicroPython.
"""

from host_tests.client import dialogue
from host_tests.client.dialogue import levels_of, speak
from host_tests.client.notation import counted
from host_tests.client.player import Player


class Script:
    """`name`, `levels` it is for, its numbered `lines` of steps, and does it need no memory?"""

    def __init__(self, title):
        self.name, *words = title.split()
        self.levels = tuple(int(one) for one in words if one.isdigit()) or (3, 4, 5)
        self.is_locked = "locked" in words
        self.lines = []

    def play(self, level):
        """Play it at this level, once for each row of its `for`, of several: for all pairs."""
        speak(level)
        lines = self.lines
        rows = [[]]
        while lines[0][1].startswith("for "):
            rows = [later + row for row in rows for later in _rows(lines[0][1])]
            lines = lines[1:]
        text = "\n".join([line for _, line in self.lines])
        hears_drops = "dropped " in text.replace("stats.dropped", "")
        for make in self._players("with aio" in text):
            for row in rows:
                player = make(level, hears_drops, hears_drops or "max_age=" in text)
                for number, line in lines:
                    for step in _repeated(_filled(line, row)).split(" / "):
                        self._play_step(player, number, step.strip())
                self._play_step(player, lines[-1][0], "end")

    def _players(self, is_aio):
        if is_aio:
            from host_tests.client.aio_player import AioPlayer

            return [AioPlayer]
        if self.is_locked:
            from host_tests.client.locked.player import LockedPlayer

            return [Player, LockedPlayer]
        return [Player]

    def _play_step(self, player, number, step):
        try:
            player.play(step)
        except Exception as error:
            where = "%s, line %d: %s" % (self.name, number, step)
            raise AssertionError("%s\n%r" % (where, error))


def _rows(line):
    names, _, rows = line[4:].partition(": ")
    names = names.split()
    found = []
    for row in rows.split("; " if "; " in rows else ", "):
        found += counted(row) if row.replace("..", "", 1).isdigit() else [row]
    lacking = [""] * len(names)
    return [list(zip(names, row.split(None, len(names) - 1) + lacking)) for row in found]


def _filled(line, row):
    for name, text in row:
        line = line.replace("{%s}" % name, text)
    return line


def _repeated(line):
    """`[(1 s) / poll] x3` is these steps three times."""
    before, _, rest = line.partition("[")
    steps, _, rest = rest.partition("] x")
    count, _, rest = rest.partition(" / ")
    if not count.isdigit():
        return line
    steps = (steps + " / ") * int(count) + _repeated(rest)
    return before + (steps if rest else steps[:-3])


def read_scripts(path):
    """-> the scripts of a file: a title at the margin, its notes and its steps indented."""
    scripts = []
    with open(path) as file:
        for number, line in enumerate(file.read().split("\n"), 1):
            text = line.strip()
            if text and not line.startswith((" ", "#")):
                scripts.append(Script(text))
            elif text and not text.startswith("#"):
                lines = scripts[-1].lines
                if lines and lines[-1][1][-1] in ",;":
                    lines[-1] = lines[-1][0], lines[-1][1] + " " + text
                else:
                    lines.append((number, text))
    return scripts


def tests_of(what):
    """-> (name, levels, test) of each function in the module of this name, or of each script in
    the file with this path."""
    if what.endswith(".txt"):
        return [
            (one.name, one.levels, lambda one=one: one.play(dialogue.default_level))
            for one in read_scripts(what)
        ]
    module = __import__(what, None, None, ("*",))
    names = [name for name in dir(module) if name.startswith("test_")]
    return [(name, levels_of(module, name), getattr(module, name)) for name in names]
