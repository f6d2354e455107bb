"""What a report needs beside the tables, gathered by the tasks that make these.

devices    partial rows of module `devices`, by client
timeline   of module `timeline`
examples   of module `examples`

Told of each site by itself, they have a column `site`.
"""

import json

import pyarrow as pa
import pyarrow.compute as pc

from . import devices, examples, timeline

MERGED = {"timeline": timeline.merge, "examples": examples.merge}


def merged(name, parts):
    """One table of several that were told, each site by itself where they have sites."""
    if not all("site" in part.column_names for part in parts):
        return MERGED[name](parts)
    found = []
    for site in sorted({site for part in parts for site in pc.unique(part["site"]).to_pylist()}):
        own = [of_site(part, site).drop_columns(["site"]) for part in parts]
        found.append(_named(MERGED[name]([one for one in own if one.num_rows]), site))
    return pa.concat_tables(found)


def of_site(table, site):
    """The rows of one site."""
    return table.filter(pc.equal(table["site"].cast(pa.string()), site))


def each_site(function, tables, *rest):
    """What `function`, one of the two below, tells, with the sites that it tells it of.

    Of examples there are as many as of one site; what is left out came later.
    """
    for name, table in function(tables, *rest):
        if table is None or not table.num_rows or name == "timeline":
            continue
        if name == "examples":
            sites = [json.loads(text)["site"] for text in table["text"].to_pylist()]
            table = table.append_column("site", pa.array(sites, pa.string()))
        yield name, table
    counted = timeline.needed(tables)
    found = {site for table in counted.values() for site in pc.unique(table["site"]).to_pylist()}
    for site in sorted(found):
        own = {name: of_site(table, site) for name, table in counted.items()}
        table = timeline.partial({name: some for name, some in own.items() if some.num_rows})
        if table is not None and table.num_rows:
            yield "timeline", _named(table, site)


def _named(table, site):
    return table.append_column("site", pa.array([site] * len(table), pa.string()))


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
