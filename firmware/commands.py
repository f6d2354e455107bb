"""Reads a command message: `[#ID ]WORD[ ARGUMENT]`.

`ID` is 1 to 16 characters that the sender chose; a command that has one is answered.
Allocates: commands are rare.
"""

LONGEST = 64
_LONGEST_ID = 16


def parse(payload):
    """bytes -> (id or "", word or "", argument or ""), str; a word that nobody knows is
    the caller's question."""
    try:
        words = str(payload, "utf-8").split()
    except ValueError:  # UnicodeError is one
        return "", "", ""
    name = ""
    if words and words[0][0] == "#":
        name = words.pop(0)[1:]
        if not 0 < len(name) <= _LONGEST_ID:
            return "", "", ""
    if len(words) > 2:
        return name, "", ""
    return name, words[0] if words else "", words[1] if len(words) > 1 else ""


def number(text):
    """A whole number without sign, or None."""
    return int(text) if 0 < len(text) <= 9 and all(c in "0123456789" for c in text) else None
