"""The one error of the board tools: a line that says what is wrong and what to do.

click prints it without a traceback and exits with 1; wrong use of the command
line is click's own UsageError, which exits with 2.
"""

import click


class BoardError(click.ClickException):
    """The board, the build or an input file said no; `message` is one line."""


class Commands(click.Group):
    """Tells of a file that cannot be read or written as of any other mistake, in one line."""

    def invoke(self, ctx):
        try:
            return super().invoke(ctx)
        except OSError as error:
            if error.filename is None:
                raise
            raise BoardError(f"{error.filename}: {error.strerror}") from None
