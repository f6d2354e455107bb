"""Keeps Spark's classes as they lie in Java's memory, for faster starts.

Reading and checking the 18,000 classes of a small audit was half of what it cost.  Java
can write down what a program has loaded when it ends ("class data sharing") and map that
file the next time; one that was written by another Java or from other files it leaves
alone.  Set-up runs this once for each pair of Java and Spark.
"""

import tempfile
from pathlib import Path

from . import engine, job

_ENDING_S = 120
# The header of a pcap file of Ethernet frames (IETF draft-ietf-opsawg-pcap).
_NO_FRAMES = bytes.fromhex("d4c3b2a1 02000400 00000000 00000000 00000400 01000000")


def keep(path):
    """Audit an empty capture in each way and write what Java loaded for it to `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    context = engine.start("local[2]", java_options='"-XX:ArchiveClassesAtExit=%s"' % part)
    java = context._gateway.proc
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "captures").mkdir()
        (folder / "captures" / "empty.pcap").write_bytes(_NO_FRAMES)
        for buckets in (1, 2):
            job.run(context, folder / "captures", folder / "out", job.Options(buckets=buckets))
        context.stop()
    java.stdin.close()  # this ends it
    java.wait(_ENDING_S)
    part.replace(path)


if __name__ == "__main__":
    keep(engine.CLASSES)
