"""The Spark of the audit: local by default, a cluster when told so.

What `spark-submit --conf` or `spark-defaults.conf` sets stands; here are defaults only.
"""

import contextlib
import os
import shutil
import signal
import socket
import sys
import tempfile
import zipfile
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError

ROOT = Path(__file__).resolve().parents[3]

# Little logging, and quick compilation only, as jobs mostly wait for Python.  With one compiler
# Java reserves only 48 MB for code, which a long session fills.
_JAVA_OPTIONS = (
    "-Dlog4j2.configurationFile=%s -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m "
    "-XX:+UseSerialGC -Xms128m"
) % (Path(__file__).with_name("log4j2.properties").as_uri())

_SETTINGS = {
    "spark.app.name": "umqtt31 fleet",
    "spark.log.level": "ERROR",
    "spark.executorEnv.PYTHONPATH": str(ROOT),  # where the workers share this disk
    # Workers make and free the same large arrays in each task.  If the memory went back to the
    # system each time, new pages would cost a third of all work.  The last one is for Arrow,
    # which has its own allocator.
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "spark.executorEnv.MIMALLOC_PURGE_DELAY": "-1",
}
_ALONE = {
    # On one computer nobody needs Spark's web page while an audit runs.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.daemon.module": "tools.fleet.spark.daemon",
}


_MASTER_S = 10


class NotStarted(Exception):
    """There is no Java or no master, or Java does not start; the text says what to do."""


@contextlib.contextmanager
def _quiet():
    # Java says on the standard error output what modules it uses and how it logs.  What it
    # says while it starts goes into a file, and is shown when it does not start.  What it
    # says later goes there too: our tasks' errors come back to us as exceptions.
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        except BaseException:
            os.dup2(kept, 2)
            file.seek(0)
            sys.stderr.write(file.read().decode("utf-8", "replace"))
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)


@contextlib.contextmanager
def _uninterrupted():
    # If pyspark is interrupted while Java starts, it forgets that Java, which would run for ever.
    # Later the handlers of pyspark must not replace ours.
    asked = []

    def later(number, _):
        asked.append(number)
        if len(asked) > 1:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, later)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        for number in asked[:1]:
            signal.raise_signal(number)


def start(master=None, memory="3g"):
    """A SparkContext; `master` None is `local[*]`, or what `spark-submit` was told.

    `memory` is the driver's (in local mode everything's).  Raises NotStarted.
    """
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise NotStarted("Spark needs Java 17 or newer: run `make setup`")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        SparkContext._ensure_initialized()  # Java is there, and knows what it was told
        return _context(SparkConf(), master, {})
    more = {"spark.driver.memory": memory, "spark.driver.extraJavaOptions": _JAVA_OPTIONS}
    if (master or "local").startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        more |= _ALONE
    with _uninterrupted(), _quiet():
        try:
            return _context(SparkConf(loadDefaults=False), master or "local[*]", more)
        except PySparkRuntimeError as error:
            if error.getCondition() != "JAVA_GATEWAY_EXITED":
                raise
            text = "Java did not start, its reason stands above: look at --master and --memory"
            raise NotStarted(text) from None


def _context(conf, master, more):
    conf = conf.setMaster(master) if master else conf
    _find(conf.get("spark.master", ""))
    for key, value in (_SETTINGS | more).items():
        conf.setIfMissing(key, value)
    return SparkContext.getOrCreate(conf)


def _find(master):
    # Spark looks for a minute, and then says only that something is null.
    if not master.startswith("spark://"):
        return
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            return socket.create_connection((host.strip("[]"), port), _MASTER_S).close()
        except OSError as error:
            reason = error
    raise NotStarted("%s does not answer: %s: look at --master" % (master, reason))


def package(path):
    """Write the code for the workers of a cluster as a zip file -> number of files in it.

    What it imports beside (numpy, pyarrow, pyspark) has to be there.  The same code gives the
    same file, byte by byte.
    """
    code = (ROOT / "tools/fleet").rglob("*")
    found = [one for one in code if one.is_file() and "__pycache__" not in one.parts]
    found = sorted([ROOT / "tools/__init__.py", *found])
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for source in found:
            about = zipfile.ZipInfo(source.relative_to(ROOT).as_posix(), (1980, 1, 1, 0, 0, 0))
            archive.writestr(about, source.read_bytes())
    return len(found)
