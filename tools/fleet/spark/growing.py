"""`mqtt_growing`: a folder of captures that grows, as a streaming source of Spark.

Gives packed rows (module `pack`): segments of pcap files, events of JSON lines, and
what was counted; `stream` decodes them.  The options, in any case:

    path, ports, buckets, rangebytes, hadoop  as for `mqtt_pcap`
    maxbytes  about how much a micro-batch takes
    settle    seconds after which a file counts as complete that can only be read whole

An offset is {file: byte up to which it was read}; a file that is shorter now is another.  Files
that cannot be read stand there with a slash before their names, when that was told.
"""

from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes

from .pack import PACKED
from .source import PORTS, RANGE_BYTES, Range

MAX_BYTES = 256 << 20
SETTLE_S = 60
_UNREAD = "/"  # no name of a capture begins like that


class MqttGrowingSource(DataSource):
    """The data source; see the module."""

    @classmethod
    def name(cls):
        return "mqtt_growing"

    def schema(self):
        return PACKED

    def streamReader(self, schema):
        return GrowingReader(dict(self.options))


class GrowingReader(DataSourceStreamReader):
    """Reads what was added to the files of `path` since an offset."""

    # Tasks construct it too, so nothing happens here.
    def __init__(self, options):
        self.path = options.get("path", "")
        self._ports = {int(port) for port in options.get("ports", PORTS).split(",")}
        self._buckets = int(options.get("buckets", 8))
        self._range_bytes = int(options.get("rangebytes", RANGE_BYTES))
        self._max_bytes = int(options.get("maxbytes", MAX_BYTES))
        self._settle_s = float(options.get("settle", SETTLE_S))
        self._hadoop = options.get("hadoop", "")
        self._first_ts = {}

    def initialOffset(self):
        return {}

    def getDefaultReadLimit(self):
        return ReadMaxBytes(self._max_bytes)

    def latestOffset(self, start, limit):
        from ..capture import growth
        from ..places import java

        java.adopt(self._hadoop)
        left = 1 << 62 if isinstance(limit, ReadAllAvailable) else limit.max_bytes
        end = {}
        found = self._files()
        for source in sorted(_readable(found), key=self._order):
            begin = start.get(source.capture, 0)
            if source.size_bytes < begin:  # another file of the same name: from its beginning
                begin = 0
                self._first_ts.pop(source.path, None)
            end[source.capture] = begin
            if left > 0:
                end[source.capture] = self._reached(growth, source, begin, left)
                left -= end[source.capture] - begin
        for source in found:
            if source.problem:
                name = _UNREAD + source.capture
                size = source.size_bytes
                end[name] = start.get(name) or self._reached(growth, source, 0, size)
        # The same place is always the same text.
        return {name: end[name] for name in sorted(end) if end[name]}

    def _reached(self, growth, source, begin, most_bytes):
        try:
            return self.end_of(growth, source, begin, most_bytes)
        except FileNotFoundError:  # deleted since it was listed
            return begin

    def end_of(self, growth, source, begin, most_bytes):
        """Up to which byte a file can be read now."""
        return growth.end_of(source, begin, most_bytes, self._settle_s)

    def partitions(self, start, end):
        from ..capture import growth
        from ..places import java

        java.adopt(self._hadoop)
        found = self._files()
        parts = [Range([one]) for one in [*_unread(found, start, end), *_lost(found, start, end)]]
        for source in _readable(found):
            begin, until = start.get(source.capture, 0), end.get(source.capture, 0)
            begin = begin if begin <= until else 0
            if until > begin:
                first_ts, _ = self._order(source)
                for one in growth.ranges(source, begin, until, self._range_bytes):
                    parts.append(Range([source], one[0], one[1], first_ts))
        return parts

    def read(self, partition):
        from ..places import java
        from . import tasks

        java.adopt(self._hadoop)
        for source in partition.sources:
            yield from tasks.read_segments(source, partition, self._ports, self._buckets)

    def _files(self):
        from ..capture import files

        return files.survey(self.path)

    def _order(self, source):
        # As in a batch: by the time the capture begins, then by name.
        from ..capture import files

        if source.path not in self._first_ts:
            try:
                first_ts = None if files.is_json(source) else files.first_ts(source.path)
            except FileNotFoundError:  # deleted since it was listed
                first_ts = None
            if first_ts is None:
                return 0, source.capture
            self._first_ts[source.path] = first_ts
        return self._first_ts[source.path], source.capture


def _readable(sources):
    return [source for source in sources if source.problem is None]


def _unread(found, start, end):
    news = end.keys() - start.keys()
    return [one for one in found if one.problem and _UNREAD + one.capture in news]


def _lost(found, start, end):
    # What was there to be read when the batch was planned, and is not any more.
    from ..capture import files

    there = {one.capture for one in found if one.problem is None}
    for name in sorted(end.keys() - there):
        if not name.startswith(_UNREAD) and end[name] > start.get(name, 0):
            text = "was deleted before it was read"
            yield files.Source(name, name, files.site_of(name), text)
