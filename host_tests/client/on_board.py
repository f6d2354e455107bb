"""Runs the test functions of one module under MicroPython.

Usage: micropython on_board.py MODULE.  Prints "ok NAME", or "FAILED NAME" and a
trace, for each function.  The module uses no pytest, so it runs on both.
"""

import sys

module = __import__(sys.argv[1], None, None, ("*",))
for name in dir(module):
    if name.startswith("test_"):
        try:
            getattr(module, name)()
            print("ok", name)
        except Exception as error:
            print("FAILED", name)
            sys.print_exception(error, sys.stdout)
