"""Finishes a staged update, before anything else starts.

`make deploy` copies new files to staged/ under numbers, and last of all `ready`, the
list of where they belong.  Without `ready` nothing was decided and the old files
run; with it the moves are carried out, again if need be, so a plug pulled at any
moment leaves all old files or, after the next start, all new ones.
"""

import os

# Not named as this module: a folder on the path would be imported in its place.
FOLDER = "staged"
READY = FOLDER + "/ready"


def finish():
    """Carry out a staged update -> whether there was one.

    `ready` has one line "NUMBER PATH" per file, or "- PATH" for one to remove.
    """
    while True:
        try:
            return _finish()
        except KeyboardInterrupt:
            pass  # whatever runs next would meet some files old and some new


def _finish():
    if not _is_there(FOLDER):
        return False
    # After a cut in the middle of a move littlefs hides a file too many, until
    # something is written (seen with MicroPython 1.25 and 1.26).
    with open(FOLDER + "/written", "w"):
        pass
    if not _is_there(READY):
        return False
    with open(READY) as file:
        for line in file.read().split("\n"):
            number, _, path = line.partition(" ")
            _move(path if number == "-" else FOLDER + "/" + number, number, path)
    os.remove(READY)
    for name in os.listdir(FOLDER):
        os.remove(FOLDER + "/" + name)
    os.rmdir(FOLDER)
    return True


def _move(source, number, target):
    if not _is_there(source):
        return  # done before the power went
    if number == "-":
        os.remove(source)
    else:
        os.rename(source, target)


def _is_there(path):
    try:
        os.stat(path)
    except OSError:
        return False
    return True
