"""What errors are called and what they say; loaded when that is asked for."""

from typing import Any

REFUSED_VERSION: int
REFUSED_CLIENT_ID: int
REFUSED_UNAVAILABLE: int
REFUSED_CREDENTIALS: int
REFUSED_NOT_AUTHORIZED: int
NETWORK: int
TIMEOUT: int
CLOSED: int
PROTOCOL: int
TOO_LARGE: int
FULL: int
JOURNAL: int
BUSY: int
AWAITING_REL: int
REFUSED_FILTER: int

def text_of(error: Any, cause: Any, place: Any) -> str:
    """For the core: the text of an MQTTError."""

def text_of_code(code: int) -> str:
    """The text of a code."""

def complaint(
    what: str, value: Any, least: int | None = None, most: int | None = None
) -> Exception:
    """For the core: the exception for an argument that it refuses."""

def show(value: Any) -> str:
    """For the core: what print() says of a Message or of Stats."""

def find(name: str) -> Any:
    """For the core: what the package has under this name."""
