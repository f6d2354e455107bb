"""Set-up of this checkout: what is missing is installed, what is there is left alone.

Runs before the virtual environment exists, so every module here but `cli` needs
nothing beyond Python's standard library.  `make setup` starts `__main__`.
"""


class SetupError(Exception):
    """Set-up cannot go on; the message is one line that says what to do."""
