"""Tables on the screen; what stands in them is computed elsewhere."""

from rich.console import Console
from rich.table import Table

from .size import BUDGETS, BUILT_BUDGETS, FORMS, group_totals


def print_sizes(modules, built):
    """Bytes per module and group, budgets, and the difference to the last commit; `built`
    {group: bytes} as boards get the library."""
    table = Table("module", "part of", "bytes", "since commit", "budget")
    for column in table.columns[2:]:
        column.justify = "right"
    order = sorted(modules, key=lambda module: (module.group, module.name))
    for module in order:
        change = _change(module.bytes, module.before)
        table.add_row(module.name, module.group, f"{module.bytes:,}", change, "")
    table.add_section()
    for group, (now, before) in sorted(group_totals(modules).items()):
        budget = f"{BUDGETS[group]:,}" if group in BUDGETS else ""
        table.add_row(f"all of {group}", "", f"{now:,}", _change(now, before), budget)
    for group, now in built.items():
        budget = f"{BUILT_BUDGETS[group]:,}" if group in BUILT_BUDGETS else ""
        table.add_row(f"{group} as boards get it", "", f"{now:,}", "", budget)
    _console().print(table)


def print_heap(rows):
    """`rows` maps what was imported to {form: bytes of heap}."""
    table = Table("heap in use after import, 32-bit", *FORMS)
    for name, heap in rows.items():
        table.add_row(name, *(f"{heap[form]:,}" if form in heap else "" for form in FORMS))
    _console().print(table)


def print_frames(frames):
    """Functions whose frame comes from the heap, or from the stack if that is locked."""
    table = Table("function", "words of its frame", "entered with the heap locked")
    table.columns[1].justify = "right"
    for frame in frames:
        table.add_row(frame.name, str(frame.words), "yes" if frame.is_entered_locked else "")
    _console().print(table)


def _change(now, before):
    return "new" if before is None else f"{now - before:+,}" if now != before else "="


def _console():
    # A fixed width: also in a log file no cell is cut off.
    return Console(width=100)
