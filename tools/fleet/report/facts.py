"""What a report needs beside the tables, gathered by the tasks that make these.

devices    partial rows of module `devices`, by client
timeline   of module `timeline`
examples   of module `examples`
"""

from . import devices, examples, timeline

MERGED = {"timeline": timeline.merge, "examples": examples.merge}


def of_clients(tables, packets, messages):
    """(name, table) of what the tables of some whole clients tell.

    `packets` and `messages` are all of them.
    """
    yield from _told(tables, packets=packets)
    yield "examples", examples.order_strips(packets, messages)


def of_topics(tables, messages):
    """(name, table) of what the tables of some whole topics and devices tell."""
    yield from _told(tables, messages=messages)


def _told(tables, packets=None, messages=None):
    yield "devices", devices.partial(tables)
    yield "timeline", timeline.partial(tables)
    yield "examples", examples.partial(tables, packets, messages)
