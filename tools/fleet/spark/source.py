"""`mqtt_pcap`: captures as a data source of Spark.

`spark.read.format("mqtt_pcap").load(folder)` decodes each file by itself and gives
rows of `schemas.EVENTS`, which hold for files with whole connections.  The options

    mode      packets (as above), events or segments (both packed, see `pack`)
    ports     TCP ports of MQTT, "1883" or "1883,1884"
    buckets   into how many parts segments (by connection) or events (by client) go
    rangebytes  how large the parts of a pcap file are that tasks read
    hadoop    `java.settings()`, where a path is not local

are read without regard to case.  With segments, a large pcap file is read in parts.
"""

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

PORTS = "1883"
RANGE_BYTES = 64 << 20


class MqttPcapSource(DataSource):
    """The data source; see the module."""

    @classmethod
    def name(cls):
        return "mqtt_pcap"

    def schema(self):
        from pyspark.sql.pandas.types import from_arrow_schema

        from .. import schemas
        from .pack import PACKED

        if self.options.get("mode", "packets") == "packets":
            return from_arrow_schema(schemas.EVENTS, prefer_timestamp_ntz=False)
        return PACKED

    def reader(self, schema):
        return _Reader(dict(self.options))


class Range(InputPartition):
    """The files of `sources`; of a single one the bytes from `begin` to `until`.

    `section` is the start of the pcapng section that `begin` lies in.
    """

    def __init__(self, sources, begin=0, until=None, first_ts=0, section=0):
        self.sources = sources
        self.begin = begin
        self.until = until
        self.section = section
        self.first_ts = first_ts


def ranges(sources, is_cut, range_bytes):
    """What each task reads of these files; `is_cut`: large ones in several `Range`s.

    Opens every file whose name does not tell what it is, and with `is_cut` every capture.
    """
    from ..capture import files

    parts, unread = [], []
    for source in map(files.checked, sources):
        if source.problem is not None:
            unread.append(source)
        elif not is_cut or files.is_json(source):
            parts.append(Range([source]))
        else:
            first = files.first_ts(source.path) or 0
            try:
                cuts = files.ranges(source.path, range_bytes)
            except OSError:  # who reads it says why
                cuts = [(0, None, 0)]
            for begin, until, section in cuts:
                parts.append(Range([source], begin, until, first, section))
    return [Range(unread), *parts] if unread else parts


class _Reader(DataSourceReader):
    # Tasks construct it too, so nothing happens here.
    def __init__(self, options):
        self._path = options.get("path", "")
        self._mode = options.get("mode", "packets")
        self._ports = {int(port) for port in options.get("ports", PORTS).split(",")}
        self._buckets = int(options.get("buckets", 8))
        self._range_bytes = int(options.get("rangebytes", RANGE_BYTES))
        self._hadoop = options.get("hadoop", "")

    def partitions(self):
        from ..capture import files
        from ..places import java

        java.adopt(self._hadoop)
        found = ranges(files.listed(self._path), self._mode == "segments", self._range_bytes)
        return found or [Range([])]

    def read(self, partition):
        from ..places import java
        from . import tasks

        java.adopt(self._hadoop)
        if self._mode != "packets":
            yield from tasks.read(partition, self._mode, self._ports, self._buckets)
            return
        for source in partition.sources:
            if source.problem is None:
                yield from tasks.read_packets(source, self._ports)
