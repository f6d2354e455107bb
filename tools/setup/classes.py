"""Spark's classes in the form in which they lie in Java's memory: halves what a start costs.

They are good for one Java and one Spark, and made anew for others.
"""

import subprocess
from pathlib import Path

from tools.project import ROOT

from . import environment, system

_MADE_FOR = ROOT / ".tools" / "spark" / "made-for.txt"


def install() -> bool:
    """Make them if they are missing; returns whether there was anything to do.

    Without them all else works, so that a failure is only told.
    """
    java = system.find_java()
    if java is None:
        return False
    spark = [pin for pin in environment.wanted(groups=("fleet",)) if pin.startswith("pyspark")]
    # Asking Java itself would start it once more for every command.
    file = Path(java).resolve()
    wanted = "\n".join([*spark, str(file), str(file.stat().st_mtime_ns)])
    if _MADE_FOR.exists() and _MADE_FOR.read_text() == wanted:
        return False
    print("setup: keeping Spark's classes, so that it starts faster", flush=True)
    command = [str(environment.PYTHON), "-m", "tools.fleet.spark.classes"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        why = (done.stderr.strip() or "it said nothing").splitlines()[-1]
        print(f"setup: {why} (audits start slower; all else works)", flush=True)
    _MADE_FOR.parent.mkdir(parents=True, exist_ok=True)
    _MADE_FOR.write_text(wanted)
    return True
