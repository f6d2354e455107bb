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
_PRINTS = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
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
        """A file of the page's."""
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
        with self._started(words) as process:
            for text in process.stdout:
                printed += text
                if then and then[0] in text:
                    then[1]()
                    then = None
                if ctrl_c and not is_stopped and pattern.search(printed):
                    is_stopped = True
                    os.killpg(process.pid, signal.SIGINT)
        assert pattern.search(printed), f"{words} printed, instead of {shown}:\n{printed[-3000:]}"
        assert is_stopped or process.returncode == 0, f"{words}: {printed}"
        return printed

    @contextlib.contextmanager
    def _started(self, words):
        # In a session of its own, so that Ctrl-C goes to all of it, and not to the tests.
        about = {"cwd": self.folder, "env": self._environment, "start_new_session": True}
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, **about, **_PRINTS)
        alarm = threading.Timer(SECONDS, os.killpg, (process.pid, signal.SIGKILL))
        alarm.start()
        try:
            with process:
                yield process
        finally:
            alarm.cancel()


class Terminal:
    """A running command, its lines as they come; a context manager that ends it."""

    def __init__(self, argv, folder, environment=None):
        self._lines = queue.Queue()
        self._process = subprocess.Popen(argv, cwd=folder, env=environment, **_PRINTS)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop(signal.SIGKILL)

    def wait_for(self, end):
        """-> the lines up to one that ends so, which has to come."""
        seen = []
        while not seen or not seen[-1].endswith(end):
            seen.append(self._lines.get(timeout=SECONDS))
        return seen

    def stop(self, number=signal.SIGINT):
        """Ctrl-C, unless another signal is given -> the lines that nobody had read."""
        self._process.send_signal(number)
        self._process.wait(SECONDS)
        self._reader.join(SECONDS)
        return [self._lines.get() for _ in range(self._lines.qsize())]


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
