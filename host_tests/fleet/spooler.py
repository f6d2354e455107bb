"""A subscriber as a process of its own, which kills itself at a chosen moment.

Arguments: spool folder, port, client id, number of steps it lives (0: for ever).  A
step is the moment before or after a message, a release or an fsync.
"""

import os
import random
import signal
import sys
import time

from tools.fleet.live.spool import Spool
from tools.fleet.live.subscriber import Subscriber


def main(folder, port, client_id, steps):
    """Run until killed."""
    random.getrandbits = lambda bits: 0  # no pause before it connects
    left = [int(steps)]

    def step():
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def stepping(function):
        def run(*args):
            step()
            result = function(*args)
            step()
            return result

        return run

    os.fsync = stepping(os.fsync)
    Spool.append = stepping(Spool.append)
    Spool.release = stepping(Spool.release)
    spool = Spool(folder, file_bytes=2000)
    Subscriber(spool, client_id, "127.0.0.1", int(port), ["k/#"]).start()
    while True:
        time.sleep(1)


main(*sys.argv[1:])
