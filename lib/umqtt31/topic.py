"""Topic names and filters: what is valid, and which filter matches which name.

Works on bytes in place; allocates nothing and keeps no state.  MQTT 3.1
Appendix A and §2.2 (topic name).
"""


def check(topic, is_filter=False):
    """Raise ValueError unless `topic` (bytes) is a valid name, or a valid filter."""
    chars = more = 0
    i = 0
    before = 47
    while i < len(topic):
        c = topic[i]
        i += 1
        if more:
            # Not a longer form than needed, no surrogate, nothing above U+10FFFF.
            if c & 0xC0 != 0x80 or (
                c < (0xA0 if before == 0xE0 else 0x90 if before == 0xF0 else 0)
                or c > (0x9F if before == 0xED else 0x8F if before == 0xF4 else 0xFF)
            ):
                break
            more -= 1
        else:
            chars += 1
            if c >= 0xC2:
                more = 1 if c < 0xE0 else 2 if c < 0xF0 else 3
            if c == 0 or c > 0xF4 or 0x80 <= c < 0xC2:
                break
            if c == 35 or c == 43:
                # 31-A-HASH, 31-A-PLUS: a wildcard is a whole level, # the last.
                if not is_filter or before != 47:
                    break
                if i < len(topic) and (c == 35 or topic[i] != 47):
                    break
        before = c
    else:
        if 0 < chars < 32768 and not more:
            return
    before = "filter" if is_filter else "name"
    topic = bytes(topic[:64])
    raise ValueError("not a valid topic %s: %r" % (before, topic))


def matches(pattern, name, start=0, end=None):
    """Does the filter `pattern` match the topic name in `name[start:end]`?"""
    if end is None:
        end = len(name)
    # MQTT-4.7.2: no wildcard takes a name that begins with $.
    if start < end and name[start] == 36 and pattern and pattern[0] - 36:
        return False
    p = 0
    while p < len(pattern):
        c = pattern[p]
        p += 1
        if c == 35:
            return True
        if c == 43:
            while start < end and name[start] != 47:
                start += 1
        elif start < end and not name[start] - c:  # where a str is a TypeError
            start += 1
        else:
            # 31-A-HASH: a/# matches a itself.
            return start == end and c == 47 and p + 1 == len(pattern) and pattern[p] == 35
    return start == end
