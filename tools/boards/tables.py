"""TOML files that a person wrote."""

import tomllib

from .errors import BoardError
from .places import shown


def read_toml(path):
    """The tables of a file in UTF-8, whatever the system's own encoding is.

    Raises OSError, and BoardError that names the file.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise BoardError(f"{shown(path)}: not in UTF-8; save it as that") from None
    except tomllib.TOMLDecodeError as error:
        raise BoardError(f"{shown(path)}: not valid TOML: {error}") from None
