"""What `spark-submit` starts: `python -m tools fleet`, on a cluster.

spark-submit --py-files build/fleet.zip tools/fleet/spark/submit.py audit …
"""

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]

if __name__ == "__main__":
    # Else Python would import this folder's modules in place of standard ones.
    sys.path[0] = str(_ROOT)
    from tools.fleet.cli import cli

    cli(prog_name="fleet")
