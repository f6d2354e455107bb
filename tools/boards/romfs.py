"""ROMFS images: library and firmware as bytecode that runs from flash in place.

The image is written by mpremote's own romfs writer.  Boards whose firmware has a
ROMFS partition take it with `mpremote romfs deploy`; it is mounted at /rom.
"""

from mpremote.romfs import VfsRomWriter


def make_romfs(files):
    """The image that holds `files` {path: bytes}."""
    writer = VfsRomWriter()
    _fill(writer, _as_tree(files))
    return bytes(writer.finalise())


def _as_tree(files):
    tree = {}
    for path, data in files.items():
        *folders, name = path.split("/")
        level = tree
        for folder in folders:
            level = level.setdefault(folder, {})
        level[name] = data
    return tree


def _fill(writer, tree):
    for name in sorted(tree):
        if isinstance(tree[name], dict):
            writer.opendir(name)
            _fill(writer, tree[name])
            writer.closedir()
        else:
            writer.mkfile(name, tree[name])
