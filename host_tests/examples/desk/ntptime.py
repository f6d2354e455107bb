"""What the examples use of a board's `ntptime`, on the desk: there is a time server while
there is the file time.txt.  The computer's clock is right already."""

import os


def settime():
    os.stat("time.txt")
