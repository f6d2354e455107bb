"""`python -m host_tests sizes`: the tables."""

import click
from rich.console import Console
from rich.table import Table

from . import frames, measure


@click.command()
def cli() -> None:
    """Show bytes of bytecode per module, heap after import, and large frames."""
    # A fixed width: also in a log file no cell is cut off.
    console = Console(width=100)
    plain, built = measure.sizes(), measure.sizes(is_built=True)
    table = Table("module", "bytes of .mpy", "as make build makes it")
    for name, size in plain.items():
        table.add_row(name, f"{size:,}", f"{built[name]:,}")
    console.print(table)
    table = Table("heap in use after import, 32-bit", *measure.FORMS)
    also = {"umqtt31": "", "umqtt31 and Journal": "from umqtt31.journal import Journal"}
    for name, line in also.items():
        for is_built in (False, True):
            heap = measure.heap_after_import(line, is_built)
            title = f"{name} as make build makes it" if is_built else name
            table.add_row(
                title, *(f"{heap[form]:,}" if form in heap else "" for form in measure.FORMS)
            )
    console.print(table)
    table = Table("function", "words of its frame", "entered with the heap locked")
    for frame in frames.large(frames.frames_of_library()):
        table.add_row(frame.name, str(frame.words), "yes" if frame.is_entered_locked else "")
    console.print(table)
