"""The store on flash."""

from ._types import BlockDevice

class Journal:
    """Keeps what is in flight and queued over resets and pulled plugs: `store=Journal(…)`.

    After a reset: the same constructors, then `connect(clean_session=False)`.

    `program_bytes`: what the flash programs at once.  `erase_bytes`: what is erased at
    once, the device's block or a multiple of it.  `cell_bytes`: groups of records begin at
    multiples of it, so that several share a page; where the flash may not program a page
    twice (ECC), give the value of `program_bytes`.  `group_commit`: the messages of one
    `poll()` share a program operation, and are durable when they are first sent instead of
    when `publish()` returns.  `erase_foreign`: erase what another client id, format,
    layout or level left, unsent messages included, instead of refusing it.
    """

    corrupt_pages: int
    """Pages that recovery found and passed over; a power cut leaves one, too."""

    def bad_blocks(self) -> int:
        """Blocks of the device that failed when they were to be written last: the journal
        goes on without them."""

    def __init__(
        self, block_device: BlockDevice, *, program_bytes: int = 256, erase_bytes: int = 4096,
        cell_bytes: int = 64, group_commit: bool = False, erase_foreign: bool = False,
    ) -> None: ...  # fmt: skip
