"""What `spark-submit` starts: `python -m tools fleet`, on a cluster.

spark-submit --py-files build/fleet.zip tools/fleet/spark/submit.py audit …
"""

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]

if __name__ == "__main__":
    # The folder of this script would stand first, with modules named as the standard's.
    sys.path[0] = str(_ROOT)
    from tools.fleet.cli import cli

    cli(prog_name="fleet")
