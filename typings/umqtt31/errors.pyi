"""The one exception for everything that is not a caller's slip."""

class MQTTError(OSError):
    """Why the client could not go on; `str(error)` says what to do.

    It is an OSError, so that programs which catch that to reconnect go on working.  The
    client is closed then, nothing is lost, and `connect()` or `reconnect()` work.
    """

    code: int
    """One of the names in `umqtt31` (`FULL`, `CLOSED` …), or the broker's return code."""
    errno: int | None
    """The system's number, if it was the system that failed."""

    def __init__(self, code: int, text: str | None = None, errno: int | None = None) -> None: ...
