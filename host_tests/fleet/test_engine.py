"""How Spark's Java is started."""

import subprocess
import sys
from pathlib import Path

from tools.fleet.spark import engine


def test_java_maps_the_classes_that_set_up_kept(spark):
    java = spark.sparkContext._gateway.proc.pid
    is_mapped = str(engine.CLASSES.resolve()) in Path("/proc/%d/maps" % java).read_text()
    assert is_mapped == engine.CLASSES.exists()


def test_classes_that_java_cannot_use_are_passed_over_in_silence(tmp_path):
    (tmp_path / "classes of another.jsa").write_bytes(b"of another Java")
    program = (
        "import sys; from pathlib import Path; from tools.fleet.spark import engine\n"
        "engine.CLASSES = Path(sys.argv[1])\n"
        "print(engine.start('local[1]').range(3).count())"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "classes of another.jsa")]
    done = subprocess.run(command, cwd=engine.ROOT, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("3\n", "")
