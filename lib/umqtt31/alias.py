"""Topic aliases: topics that the broker knows by a number, on this connection.

Loaded by `client.v5.topic_aliases` only.  MQTT 5 §3.3.2.3.4.
"""

from struct import pack_into


def shorten(client, topics, buf, ring, at, size):
    """Encode the message that `client` publishes, which has `size` bytes at `ring[at]`, with an
    alias, if it may have one -> where it ends in `buf`, in which it begins at 5; 0 for none.
    What is kept has no alias.  `topics`: those that have one."""
    topic, msg = client._valid, client._msg
    for alias in range(len(topics)):
        if not topics[alias] or topics[alias] == topic:
            break
    else:
        return 0
    # MQTT-3.3.2-9, MQTT-3.2.2-17: 1 up to what both sides want.
    name = b"" if topics[alias] else topic
    if min(client._most_bytes, client.buffer_size) - size + len(topic) - len(name) < 5:
        return 0
    topics[alias] = topic
    alias += 1
    extra = client._extra + 3
    extra += (extra > 128) - (extra > 131)  # their length may need a second byte
    first = ring[at]
    n = len(name) + len(msg) + extra + (4 if first & 6 else 2)
    end = n + 7
    form, long, width = client._forms
    if n > 127:
        end += 1
        form = long
        n = (n & 127 | 128) << 8 | n >> 7
    pack_into(form, buf, 0, 0, 0, 0, first, n, len(name), name)
    n = end - len(msg)
    pack_into(width, buf, n, msg)
    client._add(buf, n, alias, extra)
    n -= extra
    if first & 6:
        buf[n - 2] = ring[at - 2]
        buf[n - 1] = ring[at - 1]
    return end
