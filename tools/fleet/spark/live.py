"""`mqtt`: a live broker as a streaming source of Spark.

A subscriber with a persistent session fills a spool in the folder `path`; what is
on disk there can be read, and is deleted when Spark has committed it.  The options,
in any case:

    path      folder of the spool, on a disk of the driver that workers read too
    server, port, user, password, clientid  of the broker
    filter    topics, several ones separated by spaces
    keep      `true`: delete nothing
    buckets, rangebytes, maxbytes  as for `mqtt_growing`
"""

from pathlib import Path

from pyspark.sql.datasource import DataSource

from .. import places
from .growing import GrowingReader
from .pack import PACKED

TROUBLE = "trouble"  # file of the spool: why nothing comes from the broker, empty when it does

# By spool folder; in the driver's process for sources, and for as long as it lives.
_subscribers = {}


class MqttSource(DataSource):
    """The data source; see the module."""

    @classmethod
    def name(cls):
        return "mqtt"

    def schema(self):
        return PACKED

    def streamReader(self, schema):
        return _LiveReader(dict(self.options))


class _LiveReader(GrowingReader):
    # Tasks construct it too, so the subscriber starts with the first question for news.
    def __init__(self, options):
        super().__init__(options)
        self._options = options
        self._said = None

    def latestOffset(self, start, limit):
        self._start()
        self._tell(_subscribers[self.path].last_error)
        return super().latestOffset(start, limit)

    def _tell(self, error):
        # Spark runs this in a process of its own, of which a person sees nothing.
        text = str(error) if error else ""
        if text != self._said:
            places.replace_text(Path(self.path) / TROUBLE, text)
        self._said = text

    def _files(self):
        # The spool keeps a file of its own beside the messages.
        from ..capture import files

        return files.find(self.path)

    def end_of(self, growth, source, begin, most_bytes):
        # Only what stays after a power cut, and only whole lines.
        synced_bytes = _subscribers[self.path].synced_bytes(source.path)
        if synced_bytes <= begin:
            return begin
        most_bytes = min(most_bytes, synced_bytes - begin)
        return min(synced_bytes, growth.end_of(source, begin, most_bytes, float("inf")))

    def commit(self, end):
        if self._options.get("keep") == "true" or self.path not in _subscribers:
            return
        first = None
        for source in self._files():
            path = Path(source.path)
            if end.get(source.capture, 0) < path.stat().st_size:
                break
            first = int(path.stem)
        if first is not None:
            # The last file that was read wholly may still be written to.
            _subscribers[self.path].prune(first)

    def stop(self):
        if self.path in _subscribers:
            _subscribers.pop(self.path).stop()

    def _start(self):
        if self.path in _subscribers:
            return
        from ..live.spool import Spool
        from ..live.subscriber import Subscriber

        get = self._options.get
        subscriber = Subscriber(
            Spool(self.path),
            get("clientid", "umqtt31-fleet"),
            get("server", "localhost"),
            int(get("port", 1883)),
            get("filter", "#").split(),
            get("user"),
            get("password"),
        )
        subscriber.start()
        _subscribers[self.path] = subscriber
