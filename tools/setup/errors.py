"""The one error of set-up."""


class SetupError(Exception):
    """Set-up cannot go on; the message is one line that says what to do."""
