"""littlefs images: made for a board's filesystem, changed, and read back.

The geometry follows MicroPython's VfsLfs2: its cache is four units, and a file
kept inside the metadata may not be larger than the reader's cache.
"""

from littlefs import LittleFS, LittleFSError, UserContext

from .device.reserve import BLOCK, reserve
from .errors import BoardError

_LOOKAHEAD = 32
_NO_SPACE = -28


class _WatchedContext(UserContext):
    # Remembers which blocks were read: `used_blocks()` learns from it.
    def __init__(self, buffer):
        super().__init__(buffer=buffer)
        self.blocks_read = set()

    def read(self, cfg, block, off, size):
        self.blocks_read.add(block)
        return super().read(cfg, block, off, size)


class Filesystem:
    """A littlefs in memory with the geometry of `layout` (a profile's Filesystem).

    `data` are the bytes of an existing one; without, it is formatted.
    """

    def __init__(self, layout, data=None):
        self.layout = layout
        self._context = _WatchedContext(bytearray(data or b"\xff" * layout.size))
        self._fs = LittleFS(
            context=self._context,
            mount=False,
            block_size=BLOCK,
            block_count=layout.size // BLOCK,
            read_size=layout.read_unit,
            prog_size=layout.program_unit,
            cache_size=4 * max(layout.read_unit, layout.program_unit),
            lookahead_size=_LOOKAHEAD,
        )
        if data is None:
            self._fs.format()
        try:
            self._fs.mount()
        except LittleFSError:
            raise BoardError("no littlefs of this board's size in the image") from None

    @property
    def data(self):
        """The image, a bytearray of the layout's size."""
        return self._context.buffer

    def mkdir(self, path):
        """Make a folder and its parents; one that exists is fine."""
        self._fs.makedirs(path, exist_ok=True)

    def write(self, path, data):
        """Write a file; BoardError when the filesystem is full."""
        try:
            with self._fs.open(path, "wb") as file:
                file.write(data)
        except LittleFSError as error:
            if error.code != _NO_SPACE:
                raise
            raise BoardError(
                f"filesystem full at {path}: {self.layout.size:,} bytes; leave files out"
            ) from None

    def remove(self, path):
        self._fs.remove(path)

    def read(self, path):
        with self._fs.open(path, "rb") as file:
            return file.read()

    def files(self):
        """{path: bytes} of all files, without what keeps the journal's blocks."""
        found = {}
        for folder, _, names in self._fs.walk("/"):
            if folder.rstrip("/") != "/journal":
                for name in names:
                    path = f"{folder.rstrip('/')}/{name}"
                    found[path.lstrip("/")] = self.read(path)
        return found

    def find(self, tag):
        """The block that begins with `tag`, or None."""
        for block in range(self.layout.size // BLOCK):
            if self.data.startswith(tag, block * BLOCK):
                return block
        return None

    def reserve_journal(self, offset, size):
        """Keep `size` bytes at `offset` for the journal, and leave them erased."""
        reserve(self, size // BLOCK, offset // BLOCK)
        self.data[offset : offset + size] = b"\xff" * size

    def used_blocks(self):
        """Numbers of all blocks that littlefs reads when everything is read."""
        again = Filesystem(self.layout, self.data)
        again.files()
        return again._context.blocks_read


def make_filesystem(profile, files):
    """A filesystem for `profile`'s board that holds `files` {path: bytes}."""
    filesystem = Filesystem(profile.filesystem)
    if profile.journal.place == "reserved":
        filesystem.reserve_journal(profile.journal.offset, profile.journal.size)
    for path, data in files.items():
        if "/" in path:
            filesystem.mkdir("/" + path.rpartition("/")[0])
        filesystem.write("/" + path, data)
    return filesystem
