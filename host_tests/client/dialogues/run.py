"""Runs the test functions of one module of this folder under MicroPython.

Usage: micropython run.py MODULE.  Prints "ok NAME" or "FAILED NAME" and a trace
per function.  No test here uses pytest, so that the same ones run on both.
"""

import sys

module = __import__("host_tests.client.dialogues." + sys.argv[1], None, None, ("*",))
for name in dir(module):
    if name.startswith("test_"):
        try:
            getattr(module, name)()
            print("ok", name)
        except Exception as error:
            print("FAILED", name)
            sys.print_exception(error, sys.stdout)
