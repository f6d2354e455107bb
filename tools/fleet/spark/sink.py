"""`mqtt_table`: packed parts -> a table's Parquet folder, written by the workers.

Rows that went through the JVM to its own Parquet writer would cost more than all of
decoding; packed parts (module `pack`) cost next to nothing.  The options, in any case:

    path    folder of the table
    table   its name in `schemas`; `packets`, `flows` or `readings`

Takes the parts that hold the table's rows and leaves all others alone.  `overwrite`
replaces the folder.
"""

from dataclasses import dataclass

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from .pack import PACKED


class MqttTableSink(DataSource):
    """The data sink; see the module."""

    @classmethod
    def name(cls):
        return "mqtt_table"

    def schema(self):
        return PACKED

    def writer(self, schema, overwrite):
        return _Writer(dict(self.options), overwrite)


@dataclass
class _Written(WriterCommitMessage):
    files: list


class _Writer(DataSourceArrowWriter):
    def __init__(self, options, overwrite):
        self._path = options["path"]
        self._table = options["table"]
        self._overwrite = overwrite

    def write(self, iterator):
        from .. import parquet, schemas
        from . import pack, tasks

        part_name, chosen, day_column = tasks.WRITTEN[self._table]
        writer = parquet.Writer(self._path, schemas.TABLES[self._table], day_column)
        for batch in iterator:
            for part in tasks.parts_named([batch], part_name):
                writer.add(chosen(pack.load([part])))
        return _Written(writer.finish())

    def commit(self, messages):
        from .. import parquet

        if self._overwrite:
            parquet.clear(self._path)
        parquet.publish(self._path, [one for message in messages for one in message.files])

    def abort(self, messages):
        from .. import parquet

        parquet.discard(self._path)
