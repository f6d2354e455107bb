"""Lines of the documentation, typed as they stand there: in a project folder, in a terminal.

What they print has to be what the page shows: figures may differ, and `…` stands for
anything.
"""

import contextlib
import os
import queue
import re
import shlex
import shutil
import signal
import subprocess
import threading

from host_tests.docs import blocks
from host_tests.patience import SECONDS
from tools.project import ROOT

_FOLDERS = ("boards", "firmware", "host_tests", "lib", "tools", "typings")
_FILES = ("Makefile", "README.md", "pyproject.toml")
_INSTALLED = (".venv", ".tools")
_FIGURE = re.compile(r"\d(?:[\d,.]*\d)?")


class Project:
    """A copy of the project in `folder`, its programs on the path.

    `own` says what of the page's words is another one here, such as the name of a port.
    """

    def __init__(self, folder, own):
        self.folder = folder
        self.own = own
        ignore = shutil.ignore_patterns("__pycache__", "node_modules", "corpus", "situations")
        folder.mkdir()
        for name in _FOLDERS:
            shutil.copytree(ROOT / name, folder / name, ignore=ignore)
        for name in _FILES:
            shutil.copyfile(ROOT / name, folder / name)
        for name in _INSTALLED:
            (folder / name).symlink_to((ROOT / name).resolve())
        # Without what `make test` and its pytest were given.
        theirs = ("M", "PYTEST")
        kept = {key: text for key, text in os.environ.items() if not key.startswith(theirs)}
        self._environment = kept
        kept["PATH"] = f"{ROOT / '.venv' / 'bin'}:{kept['PATH']}"

    def _here(self, text):
        for theirs, own in self.own.items():
            text = text.replace(theirs, str(own))
        return text

    def write(self, name, text):
        (self.folder / name).write_text(self._here(text))

    def type(self, page, begin, *more, ctrl_c=False, then=None):
        """Run the page's line that begins so, with `more` words at its end -> what it printed.

        It has to print what the page shows, and to end well; with `ctrl_c` it is stopped as soon
        as it has printed that.  `then`: a word, and what is done when it has printed that.
        """
        line, shown = _entered(page, begin)
        words = [*shlex.split(self._here(line), comments=True), *more]
        pattern = _pattern(self._here(shown))
        printed, is_stopped = "", False
        with Terminal(words, self.folder, self._environment) as terminal:
            for text in terminal.lines:
                printed += text + "\n"
                if then and then[0] in text:
                    then[1]()
                    then = None
                if ctrl_c and not is_stopped and pattern.search(printed):
                    is_stopped = True
                    terminal.press()
            status = terminal.process.wait(SECONDS)
        assert pattern.search(printed), f"{words} printed, instead of {shown}:\n{printed[-3000:]}"
        assert is_stopped or status == 0, f"{words}: {printed}"
        return printed


class Terminal:
    """A running command, its `lines` as they come; a context manager that ends it."""

    def __init__(self, argv, folder, environment=None):
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True}
        # In a session of its own, so that Ctrl-C goes to all of it, and not to the tests.
        pipes |= {"stderr": subprocess.STDOUT, "start_new_session": True}
        self.process = subprocess.Popen(argv, cwd=folder, env=environment, **pipes)
        self._read_lines = queue.Queue()
        self.lines = iter(lambda: self._read_lines.get(timeout=SECONDS), None)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self._read_lines.put(line.rstrip("\n"))
        self._read_lines.put(None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop(signal.SIGKILL)

    def wait_for(self, end):
        """-> the lines up to one that ends so, which has to come."""
        seen = []
        for line in self.lines:
            seen.append(line)
            if line.endswith(end):
                return seen
        raise AssertionError(f"{end!r} did not come, but {seen}")

    def press(self, number=signal.SIGINT):
        """Ctrl-C, unless another signal is given."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def stop(self, number=signal.SIGINT):
        """Press, and wait for its end -> the lines that nobody had read."""
        self.press(number)
        self.process.wait(SECONDS)
        return [*self.lines]


def _entered(page, begin):
    # The line of a block, and what the page shows below it.
    found = []
    for text in blocks.texts(page, "console"):
        found += re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    for text in blocks.texts(page, "sh"):
        found += text.replace("\\\n", " ").splitlines()
    (entry,) = (one for one in found if one.startswith(begin))
    line, _, shown = entry.partition("\n")
    return line, shown


def _pattern(shown):
    parts = [re.escape(part) for part in shown.rstrip().split("…")]
    return re.compile(_FIGURE.sub(r"[\\d,.]+", ".*".join(parts)), re.DOTALL)
