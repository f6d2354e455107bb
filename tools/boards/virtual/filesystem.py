"""The board's filesystem: littlefs, and Ctrl-C served between its steps, as on a chip.

Runs inside MicroPython.
"""

import interrupt


def _shielded(name):
    def call(self, *args):
        return interrupt.shield(getattr(self._littlefs, name), *args)

    return call


class Filesystem:
    """What vfs.mount() takes, over a vfs.VfsLfs2."""

    def __init__(self, littlefs):
        self._littlefs = littlefs

    mount = _shielded("mount")
    umount = _shielded("umount")
    open = _shielded("open")
    ilistdir = _shielded("ilistdir")
    stat = _shielded("stat")
    statvfs = _shielded("statvfs")
    mkdir = _shielded("mkdir")
    rmdir = _shielded("rmdir")
    remove = _shielded("remove")
    rename = _shielded("rename")
    chdir = _shielded("chdir")
    getcwd = _shielded("getcwd")
