"""A standalone Spark cluster on the loopback: one master, two workers, free ports."""

import contextlib
import json
import os
import subprocess
import sys
import urllib.request
from collections import Counter
from pathlib import Path

import pyspark

from host_tests.brokers import free_port
from host_tests.patience import until

_SUBMIT = Path(sys.executable).with_name("spark-submit")
_SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"


def environment():
    """As a worker's machine has it: our Python, none of the project's folders."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    kept |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    return kept | {"PYSPARK_PYTHON": sys.executable}


@contextlib.contextmanager
def cluster(folder, workers=2):
    """Yields the address of the master; all processes are ended by their ids."""
    port, page = free_port(), free_port()
    started = []

    def start(name, *arguments):
        with open(folder / ("%s-%d.log" % (name, len(started))), "wb") as log:
            command = [_SPARK_CLASS, "org.apache.spark.deploy." + name, *arguments]
            words = [str(part) for part in command]
            about = {"cwd": folder, "env": environment(), "stdout": log, "stderr": log}
            started.append(subprocess.Popen(words, **about))

    try:
        host = ("--host", "127.0.0.1")
        start("master.Master", *host, "--port", port, "--webui-port", page)
        master = "spark://127.0.0.1:%d" % port
        until(lambda: _shows(page, "workers"))
        for number in range(workers):
            size = ("--cores", 1, "--memory", "1g", "--work-dir", folder / ("work-%d" % number))
            start("worker.Worker", *host, "--webui-port", 0, *size, master)
        until(lambda: _shows(page, '"aliveworkers" : %d' % workers))
        yield master
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(30)


def _shows(page, text):
    with contextlib.suppress(OSError):
        with urllib.request.urlopen("http://127.0.0.1:%d/json/" % page, timeout=5) as answer:
            return text in answer.read().decode().lower()


def command(master, package, *arguments, settings=()):
    """`fleet` by spark-submit with the zipped code, None where the master's machine has it all;
    `settings` are texts as name=value."""
    root = Path(__file__).resolve().parents[2]
    words = [_SUBMIT, "--master", master, "--executor-memory", "512m"]
    words += ["--py-files", package] if package else []
    for one in settings:
        words += ["--conf", one]
    words += [root / "tools" / "fleet" / "spark" / "submit.py", *arguments]
    return [str(word) for word in words]


def submit(master, package, *arguments, settings=()):
    """Run `fleet` by spark-submit with the zipped code -> exit code and output."""
    words = command(master, package, *arguments, settings=settings)
    about = {"env": environment(), "cwd": "/", "capture_output": True, "text": True}
    done = subprocess.run(words, **about, timeout=1200)  # a busy computer is slow, not wrong
    return done.returncode, done.stdout + done.stderr


def executors(folder):
    """{executor id: process id} of the executors of the cluster in this folder."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            place = Path(os.readlink(path / "cwd"))
            words = (path / "cmdline").read_bytes().decode().split("\0")
            if place.is_relative_to(folder) and "--executor-id" in words:
                found[words[words.index("--executor-id") + 1]] = int(path.name)
    return found


class EventLog:
    """What Spark's driver wrote down of an application while it runs, and after."""

    def __init__(self, folder):
        self._folder = folder
        folder.mkdir()
        self.settings = (
            "spark.eventLog.enabled=true",
            "spark.eventLog.rolling.enabled=false",
            "spark.eventLog.compress=false",
            "spark.eventLog.dir=%s" % folder.as_uri(),
        )

    def events(self, name):
        """All events of this name, whole lines only."""
        texts = [path.read_text(encoding="utf-8") for path in self._folder.glob("*-*")]
        lines = [line for text in texts for line in text.split("\n")[:-1]]
        found = [json.loads(line) for line in lines if name in line]
        return [one for one in found if one["Event"] == name]

    def tasks(self):
        """{executor id: how many tasks it finished well}."""
        ends = self.events("SparkListenerTaskEnd")
        good = [one for one in ends if one["Task End Reason"]["Reason"] == "Success"]
        return Counter(one["Task Info"]["Executor ID"] for one in good)
