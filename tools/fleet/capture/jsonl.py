"""JSON lines of a subscriber, as `mosquitto_sub -F '%J'` prints them.

Gives rows of `schemas.CODED_EVENTS`: PUBLISH packets to a subscriber without a
name.  A payload that is a reading in hex (`%x`) becomes an envelope again.  Lines
that cannot be read are counted and named by their byte.
"""

import datetime
import json
import re

import numpy as np

from .. import schemas
from ..columns import table
from . import payloads
from .files import opened
from .frames import padded

_BATCH_ROWS = 50_000
_MOST_BYTES = 268_435_455  # the largest packet, so also the largest payload


def read_events(source, tally, counters=payloads.COUNTERS):
    """Yield batches of the lines of `source`; `counters` are names of JSON fields."""
    rows, offset, count = [], 0, 0
    stream = opened(source.path, tally)
    if stream is None:
        return
    with stream:
        for line in stream:
            if line.strip():
                count += 1
                if row := _row(line, offset, tally):
                    rows.append(row)
            offset += len(line)
            if len(rows) >= _BATCH_ROWS:
                yield _batch(source, rows, counters)
                rows = []
    tally.add("lines", count)
    if rows:
        yield _batch(source, rows, counters)


def _row(line, offset, tally):
    try:
        fields = json.loads(line)
        payload = _payload(fields)
        topic = fields["topic"]
        topic.encode()  # fails for half of a surrogate pair
        return {
            "offset": offset,
            "ts": _microseconds(fields["tst"]),
            "qos": _number(fields, "qos", 0, 2),
            **{name: bool(fields.get(name, False)) for name in ("retain", "dup")},
            "packet_id": _number(fields, "mid", None, 65535),
            "topic": topic,
            "payload_bytes": _number(fields, "payloadlen", len(payload), _MOST_BYTES),
            "payload": payload,
        }
    except RecursionError:
        reason = "nested too deeply"
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
        reason = str(error)
    (tally.error if line.endswith(b"\n") else tally.cut_short)(
        offset, "line not understood: %s" % reason
    )
    return None


def _number(fields, name, missing, most):
    value = fields.get(name, missing)
    if value is missing:
        return missing
    if not 0 <= int(value) <= most:
        raise ValueError("%s is %s" % (name, value))
    return int(value)


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_DOUBLE_ZONE = re.compile(r"Z([+-]\d\d:?\d\d)$")
_MICROSECOND = datetime.timedelta(microseconds=1)


def _microseconds(moment):
    # `%U` gives seconds, `%J` and `%I` a date, which mosquitto 2 spells "…Z+0100".
    if isinstance(moment, int | float):
        moment = _EPOCH + datetime.timedelta(seconds=moment)
        return (moment - _EPOCH) // _MICROSECOND
    parsed = datetime.datetime.fromisoformat(_DOUBLE_ZONE.sub(r"\1", moment))
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=datetime.UTC)
    return (parsed - _EPOCH) // _MICROSECOND


def _payload(fields):
    payload = fields.get("payload")
    if payload is None:
        return b""
    if isinstance(payload, str):
        if len(payload) == 2 * int(fields.get("payloadlen", -1)):
            try:
                return bytes.fromhex(payload)
            except ValueError:
                pass
        return payload.encode()
    return json.dumps(payload, sort_keys=True).encode()


def _batch(source, rows, counters):
    values = {name: [row[name] for row in rows] for name in rows[0]}
    payload = values.pop("payload")
    data = padded(b"".join(payload))
    sizes = np.array([len(part) for part in payload], np.int64)
    start = np.cumsum(sizes) - sizes
    is_reading = payloads.is_reading(data, start, sizes).tolist()
    same = {"site": source.site, "capture": source.capture, "connection": source.capture}
    same |= {"direction": "s2c", "packet_type": "PUBLISH", "packet_bytes": 0}
    values |= {name: [value] * len(rows) for name, value in same.items()}
    # Lines are in the order of their places, wherever the file is split.
    values["number"] = values["offset"]
    values["flags"] = [row["dup"] << 3 | row["qos"] << 1 | row["retain"] for row in rows]
    values["payload_hash"] = payloads.payload_hash(data, start, sizes)
    values["envelope"] = [
        p if is_one else payloads.envelope(p, name, counters) if p[:1] == b"{" else None
        for p, is_one, name in zip(payload, is_reading, values["topic"], strict=True)
    ]
    return table(values, schemas.CODED_EVENTS).to_batches()[0]
