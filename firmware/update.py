"""Finishes a staged update, before anything else starts, or takes it back; guards its trial.

New files lie in staged/ under numbers, and last of all `ready`, the list of where they
belong: one line "NUMBER PATH" per file, or "- PATH" for one to remove.  Without `ready`
nothing was decided and the old files run; with it the moves are carried out, again if
need be, so a plug pulled at any moment leaves all old files or, after the next start,
all new ones.

An update over the air brings previous/, the same with the old files and a `list`.  With
`trial` in it the new files are on trial: confirm() ends it well; go_back(), or too many
starts without either, makes `list` the `ready` of an update back.  boot.py, main.py and
this file change by cable only: whatever an update brings, they get the old files back.
So an update brings no module of a name that this file imports, and all imports are here.
"""

import os
import sys
import time

import micropython

try:
    import machine
except ImportError:
    machine = None  # on the desk

# A folder with the name of this module would be imported in its place.
FOLDER = "staged"
READY = FOLDER + "/ready"
PREVIOUS = "previous"
ROLLED_BACK = "rolled_back"
RUNNING = "update_id"
_TRIAL = PREVIOUS + "/trial"
_LIST = PREVIOUS + "/list"
_BACK = PREVIOUS + "/ready"
_ID = "/id"
_MOST_STARTS = 3
_PAUSE_MS = 2000
_WATCHDOG_MS = 8300  # the longest of RP2040


def boot():
    """Do what must be in place before anything can fail; an error is printed."""
    # So errors that are raised with a locked heap, or in an interrupt, keep their number.
    # The unix port needs no buffer for that and lacks the function.
    if hasattr(micropython, "alloc_emergency_exception_buf"):
        micropython.alloc_emergency_exception_buf(128)
    try:
        finish()
    except Exception as error:
        # If boot.py raised, main.py would not run, and nothing would try again.
        sys.print_exception(error)


def guard(run):
    """Call `run`, the firmware.  On trial whatever happens there, a loop that never ends
    included, ends in a reset, and after a few of them boot() gets the old files back."""
    if not is_on_trial():
        run()
        return
    if hasattr(machine, "WDT"):
        machine.WDT(timeout=_WATCHDOG_MS)
    try:
        run()
    except Exception as error:
        sys.print_exception(error)
    time.sleep_ms(_PAUSE_MS)
    if not hasattr(machine, "reset"):
        sys.exit(0)  # the desk
    machine.reset()


def finish():
    """Carry out a staged update -> whether there was one."""
    while True:
        try:
            return _finish()
        except KeyboardInterrupt:
            pass  # a program that runs now would find old and new files mixed


def confirm():
    """The new files do their work: keep them -> the update's id.  After OSError, again."""
    if is_there(_TRIAL):
        write(RUNNING, text(PREVIOUS + _ID))
        os.remove(_TRIAL)
    try:
        remove_folder(PREVIOUS)
    except OSError:
        pass  # the trial is over; the next start removes the folder
    return text(RUNNING)


def is_on_trial():
    """Are the files new, and nobody has confirmed them?"""
    return is_there(_TRIAL)


def go_back():
    """Decide to take the update back; the next start does it."""
    os.rename(_LIST, _BACK)


def make_folder(path):
    """Make a folder, and those that it lies in, unless it is there."""
    if path and not is_there(path):
        make_folder(path.rpartition("/")[0])
        os.mkdir(path)


def remove_folder(path):
    """Remove a folder of files, if it is there."""
    if is_there(path):
        for name in os.listdir(path):
            os.remove(path + "/" + name)
        os.rmdir(path)


def _finish():
    # After a cut in the middle of a move littlefs hides a file too many, `ready` perhaps,
    # until something is written (seen with MicroPython 1.25 and 1.26).
    if is_there(FOLDER):
        _try_to_write(FOLDER + "/written", "")
    if is_there(PREVIOUS):
        _count_start()
    if not is_there(READY):
        return False
    for line in text(READY).split("\n"):
        number, _, path = line.partition(" ")
        _move(path if number == "-" else FOLDER + "/" + number, number, path)
    if is_there(PREVIOUS):
        write(_TRIAL, "0")
    os.remove(READY)
    remove_folder(FOLDER)
    return True


def _count_start():
    if is_there(READY) and not is_there(_BACK):
        return  # the update is still under way
    if not is_there(_BACK):
        if not is_there(_TRIAL):
            remove_folder(PREVIOUS)  # left by an update that was never decided
            return
        starts = int(text(_TRIAL) or 0) + 1
        # If the new files have filled the flash, the count fails, and they go back at once.
        if starts <= _MOST_STARTS and _try_to_write(_TRIAL + ".new", str(starts)):
            os.rename(_TRIAL + ".new", _TRIAL)
            return
        go_back()
    _try_to_write(ROLLED_BACK, text(PREVIOUS + _ID))
    remove_folder(FOLDER)
    os.rename(PREVIOUS, FOLDER)


def _move(source, number, target):
    # If its source is gone, the move was done before a power cut.
    folder = target.rpartition("/")[0]
    if number != "-":
        if is_there(source):
            make_folder(folder)
            os.rename(source, target)
        return
    if is_there(source):
        os.remove(source)
    # MicroPython would import an empty folder in place of a module of its name.
    while folder and not (is_there(folder) and os.listdir(folder)):
        if is_there(folder):
            os.rmdir(folder)
        folder = folder.rpartition("/")[0]


def text(path):
    with open(path) as file:
        return file.read()


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def _try_to_write(path, text):
    # -> was there room for it?
    try:
        write(path, text)
    except OSError:
        return False
    return True


def is_there(path):
    try:
        os.stat(path)
    except OSError:
        return False
    return True
