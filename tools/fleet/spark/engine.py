"""The Spark session of the host tools: local by default, a cluster when told so."""

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


# Little logging, and no long compilation for jobs that mostly wait for Python.  With one
# compiler Java keeps room for 48 MB of code only; a long session fills that and fails.
_JAVA_OPTIONS = (
    "-Dlog4j2.configurationFile=%s -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
) % (Path(__file__).with_name("log4j2.properties").as_uri())

# What `classes` keeps.  Java says nothing when it cannot use it.
CLASSES = ROOT / ".tools" / "spark" / "classes.jsa"
_KEPT_CLASSES = '"-XX:SharedArchiveFile=%s" -Xlog:disable -Xlog:all=error:stderr'

# Workers make and free the same large arrays task after task.  Given back to the system
# each time, every page of them would be new each time: a third of all work.  The last is for
# Arrow, which has an allocator of its own.
_WORKER_MEMORY = {
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "spark.executorEnv.MIMALLOC_PURGE_DELAY": "-1",
}


class NotStarted(Exception):
    """There is no Java, or it does not start like this; the text says what to do."""


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


def start(master=None, memory="3g", partitions=None, name="umqtt31 fleet", java_options=None):
    """A session; `master` None is `local[*]`, or what `spark-submit` was told.

    `memory` is the driver's (in local mode everything's), `java_options` are more options
    for Java; by default it uses the classes that are kept, if they are.  Raises NotStarted.
    """
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise NotStarted("Spark needs Java 17 or newer: run `make setup`")
    paths = [os.environ.get("PYTHONPATH", ""), str(ROOT), str(ROOT / "lib")]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if java_options is None:
        java_options = _KEPT_CLASSES % CLASSES if CLASSES.exists() else ""
    builder = SparkSession.builder.appName(name)
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if master or not is_submitted:
        builder = builder.master(master or "local[*]")
    if not is_submitted and (master or "local").startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": "%s %s" % (_JAVA_OPTIONS, java_options),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
        "spark.sql.adaptive.enabled": "false",
        # Our jobs hand rows to Python and back: nothing that compiled code would speed up,
        # and compiling it took seconds of each audit.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.shuffle.partitions": str(partitions or 8),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.sources.partitionOverwriteMode": "static",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.log.level": "ERROR",
        **_WORKER_MEMORY,
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _quiet() if not is_submitted else contextlib.nullcontext():
        try:
            session = builder.getOrCreate()
        except PySparkRuntimeError as error:
            if error.getCondition() != "JAVA_GATEWAY_EXITED":
                raise
            text = "Java did not start, its reason stands above: look at --master and --memory"
            raise NotStarted(text) from None
    from .source import MqttPcapSource

    session.dataSource.register(MqttPcapSource)
    return session
