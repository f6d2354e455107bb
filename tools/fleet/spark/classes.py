"""Keeps Spark's classes as they lie in Java's memory, for faster starts.

Reading and checking the 18,000 classes of a small audit was half of what it cost.  Java
can write down what a program has loaded when it ends ("class data sharing") and map that
file the next time; one that was written by another Java or from other files it leaves
alone.  Set-up runs this once for each pair of Java and Spark.
"""

import tempfile
from pathlib import Path

from .. import batch
from ..simulate.run import Plan, write
from . import engine

_ENDING_S = 120


def keep(path):
    """Audit a small fleet and write what Java loaded for it to `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    session = engine.start("local[2]", java_options='"-XX:ArchiveClassesAtExit=%s"' % part)
    java = session.sparkContext._gateway.proc
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "captures").mkdir()
        write(Plan(devices=10, readings=100), folder / "captures" / "fleet.pcap")
        batch.audit(folder / "captures", folder / "out", {})
        session.stop()
    java.stdin.close()  # this ends it
    java.wait(_ENDING_S)
    part.replace(path)


if __name__ == "__main__":
    keep(engine.CLASSES)
