"""Finishes an update that was staged under update/, before anything else starts.

`make deploy` copies new files there under numbers, and last of all `ready`, the
list of where they belong.  Without `ready` nothing was decided and the old files
run; with it the moves are carried out, again if need be, so a plug pulled at any
moment leaves all old files or, after the next start, all new ones.
"""

import os

FOLDER = "update/"
READY = FOLDER + "ready"


def finish():
    """Carry out a staged update -> whether there was one.

    `ready` has one line "NUMBER PATH" per file, or "- PATH" for one to remove.
    """
    try:
        with open(READY) as file:
            lines = file.read().split("\n")
    except OSError:
        return False
    for line in lines:
        number, _, path = line.partition(" ")
        if number == "-":
            _move(path, None)
        elif path:
            _move(FOLDER + number, path)
    os.remove(READY)
    return True


def _move(source, target):
    try:
        os.stat(source)
    except OSError:
        return  # done before the power went
    if target:
        os.rename(source, target)
    else:
        os.remove(source)
