"""Runs the tests of one module or of one file of scripts under MicroPython, at each level.

Usage: micropython on_board.py MODULE|PATH.txt LEVEL ...  Prints "ok NAME[LEVEL]", or
"FAILED NAME[LEVEL]" and a trace, for each of them.  A module uses no pytest, so it runs
on both.
"""

import sys

from host_tests.client import dialogue


def tests_in_module(name, level):
    """-> (name, test) of those for this level."""
    module = __import__(name, None, None, ("*",))
    names = [one for one in dir(module) if one.startswith("test_")]
    return [
        (one, getattr(module, one)) for one in names if level in dialogue.levels_of(module, one)
    ]


def scripts_in_file(path, level):
    """-> (name, test) of those for this level."""
    from host_tests.client.player import read_scripts

    scripts = [script for script in read_scripts(path) if level in script.levels]
    return [(one.name, lambda one=one: one.play(level)) for one in scripts]


find = scripts_in_file if sys.argv[1].endswith(".txt") else tests_in_module
for level in map(int, sys.argv[2:]):
    for name, test in find(sys.argv[1], level):
        dialogue.speak(level)
        name_and_level = "%s[%d]" % (name, level)
        try:
            test()
            print("ok", name_and_level)
        except Exception as error:
            print("FAILED", name_and_level)
            sys.print_exception(error, sys.stdout)
