"""A block device over a file."""

class FileBlockDevice:
    """`block_count` blocks of `block_size` bytes in the file `path`, for `Journal`.

    For the desk, and for boards with littlefs and no flash to spare.  The file is made, or
    filled up, with 0xFF; what it has beyond is left alone.  Raises OSError, TypeError;
    ValueError, also if it would lie on FAT.
    """

    def __init__(self, path: str, block_count: int, block_size: int = 4096) -> None: ...
    def readblocks(self, block: int, buf: bytearray | memoryview, offset: int = 0) -> None:
        """Fill `buf` with what is at `offset` in `block`."""
    def writeblocks(
        self, block: int, buf: bytes | bytearray | memoryview, offset: int = 0
    ) -> None:
        """Write `buf` at `offset` in `block`; it is durable on return."""
    def ioctl(self, op: int, arg: int) -> int:
        """Block count (4), block size (5), erase block `arg` (6), sync (3)."""
    def close(self) -> None:
        """Close the file."""
