"""Runs the test functions of one module under MicroPython, at each level.

Usage: micropython on_board.py MODULE LEVEL ...  Prints "ok NAME[LEVEL]", or "FAILED
NAME[LEVEL]" and a trace, for each function.  The module uses no pytest, so it runs
on both.
"""

import sys

from host_tests.client import dialogue

module = __import__(sys.argv[1], None, None, ("*",))
for level in map(int, sys.argv[2:]):
    for name in dir(module):
        if not name.startswith("test_") or level not in dialogue.levels_of(module, name):
            continue
        dialogue.speak(level)
        name_and_level = "%s[%d]" % (name, level)
        try:
            getattr(module, name)()
            print("ok", name_and_level)
        except Exception as error:
            print("FAILED", name_and_level)
            sys.print_exception(error, sys.stdout)
