"""The process that Spark's Python workers on one computer are copies of.

It has loaded what they use.  Spark's zip file stands first in its path, of which Python would
compile each module again: 0.7 CPU-seconds more than for the installed ones.
"""

import sys

sys.path[:] = [one for one in sys.path if not one.endswith(".zip") or "spark" not in one]

from pyspark import worker  # noqa: E402, F401
from pyspark.daemon import manager  # noqa: E402

from . import steps  # noqa: E402, F401

if __name__ == "__main__":
    manager()
