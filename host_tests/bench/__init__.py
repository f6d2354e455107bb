"""Speed and size of the client, beside those of other clients for MicroPython.

Nothing here decides whether the project is right; it measures and prints.  Each client has an
adapter in `device/adapters/`: a few lines that give it one face.  The others are read from a
folder that the person gives, and are never kept here.
"""


class BenchError(Exception):
    """Something cannot be measured; the message is one line that says what to do."""
