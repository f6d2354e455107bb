"""Reads a command message: `interval MILLISECONDS`, `sample` or `reset`.

Allocation-free, so that a handler can call it while the heap is locked.
"""

NONE = -1
SAMPLE = -2
RESET = -3

_INTERVAL = b"interval "


def parse(payload, length):
    """The command in `payload` (`payload[i]` is byte i) -> its code, or the new
    interval in ms (> 0).

    NONE for anything that is not a command; whether an interval is allowed is the
    caller's question.
    """
    if _is_word(payload, length, b"sample"):
        return SAMPLE
    if _is_word(payload, length, b"reset"):
        return RESET
    if length > len(_INTERVAL) and _starts(payload, _INTERVAL):
        return _number(payload, len(_INTERVAL), length)
    return NONE


def _is_word(payload, length, word):
    return length == len(word) and _starts(payload, word)


def _starts(payload, word):
    for i in range(len(word)):
        if payload[i] != word[i]:
            return False
    return True


def _number(payload, start, end):
    # More digits would leave the small integers of a 32-bit port.
    if end - start > 8:
        return NONE
    number = 0
    for i in range(start, end):
        digit = payload[i] - 48
        if not 0 <= digit <= 9:
            return NONE
        number = number * 10 + digit
    return number or NONE
