"""Reads files of scripts: titles, notes, tables and repetitions, whatever their steps mean.

`dialogues/README.md` describes the notation.  What goes wrong is an AssertionError that names
the script and its line.  Runs under CPython and MicroPython.
"""

from host_tests.client.notation import counted


class Text:
    """A script's `name`, the further `words` of its title, and its numbered `lines`."""

    def __init__(self, title):
        self.name, *self.words = title.split()
        self.lines = []

    def play_with(self, make):
        """Play it with a new player for each row of its `for`, of several: for all pairs."""
        lines = self.lines
        rows = [[]]
        while lines[0][1].startswith("for "):
            rows = [later + row for row in rows for later in _rows(lines[0][1])]
            lines = lines[1:]
        for row in rows:
            player = make()
            for number, line in lines:
                for step in _repeated(_filled(line, row)).split(" / "):
                    self._play_step(player, number, step.strip())
            self._play_step(player, lines[-1][0], "end")

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


def read(path, make=Text):
    """-> the scripts of a file: a title at the margin, its notes and its steps indented."""
    scripts = []
    with open(path) as file:
        for number, line in enumerate(file.read().split("\n"), 1):
            text = line.strip()
            if text and not line.startswith((" ", "#")):
                scripts.append(make(text))
            elif text and not text.startswith("#"):
                lines = scripts[-1].lines
                if lines and lines[-1][1][-1] in ",;/":
                    lines[-1] = lines[-1][0], lines[-1][1] + " " + text
                else:
                    lines.append((number, text))
    return scripts
