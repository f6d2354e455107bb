"""Runs the tests of one module or of one file of scripts under MicroPython, at each level.

Usage: micropython on_board.py MODULE|PATH.txt LEVEL ...  Prints "ok NAME[LEVEL]", or
"FAILED NAME[LEVEL]" and a trace, for each of them.  A module uses no pytest, so it runs
on both.
"""

import sys

from host_tests.client.dialogue import speak
from host_tests.client.scripts import tests_of

tests = tests_of(sys.argv[1])
for level in map(int, sys.argv[2:]):
    for name, levels, test in tests:
        if level not in levels:
            continue
        speak(level)
        name_and_level = "%s[%d]" % (name, level)
        try:
            test()
            print("ok", name_and_level)
        except Exception as error:
            print("FAILED", name_and_level)
            sys.print_exception(error, sys.stdout)
