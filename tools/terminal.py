"""Text of others, such as a broker's, on the terminal of who runs a tool."""


def printable(text: str) -> str:
    """`text` with U+FFFD for all that is no character to see, or the plain space.

    No control character (C0, C1), line end, bidirectional override, other format character,
    surrogate, private or unassigned one is left: on a terminal they may do more than show text.
    """
    return "".join(one if one.isprintable() else "\ufffd" for one in text)
