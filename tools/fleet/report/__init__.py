"""The report: one HTML file that needs nothing else, made from the tables of an audit, and of
what the tasks that make these tell beside: partial rows of `devices`, `timeline`, `examples`.
"""

from . import devices, examples, timeline

MERGED = {"timeline": timeline.merge, "examples": examples.merge}


def told(tables, packets, messages):
    """(name, table) of what the tables of one task tell: those of some whole clients, with all
    their `packets`, or of whole topics and devices; `messages` are all of them."""
    found = [("devices", devices.partial(tables)), ("timeline", timeline.partial(tables))]
    found.append(("examples", examples.partial(tables, packets, messages)))
    if packets is not None:
        found.append(("examples", examples.order_strips(packets, messages)))
    yield from (one for one in found if one[1])
