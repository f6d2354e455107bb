"""An audit of one folder, for `small`: starts it and waits for all of its processes.

Java and the Python workers outlive the command by a moment and would not be counted.
"""

import ctypes
import os
import subprocess
import sys
import tempfile

_PR_SET_CHILD_SUBREAPER = 36  # of Linux: orphans become children of this process


def main():
    """Audit the folder named on the command line into a temporary one."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "tools", "fleet", "audit", sys.argv[1], "--out", out]
        subprocess.Popen(command)
        try:
            while True:
                os.wait()
        except ChildProcessError:
            pass


if __name__ == "__main__":
    main()
