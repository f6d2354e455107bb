"""Runs first after every reset: what must be in place before anything can fail."""

import sys

import micropython

import update

# Errors raised while the heap is locked, or by an interrupt, keep their number.
# The unix port has room for them built in and so lacks the function.
if hasattr(micropython, "alloc_emergency_exception_buf"):
    micropython.alloc_emergency_exception_buf(128)

# New files that `make deploy` left are moved into place, should the power have
# gone in between.
try:
    update.finish()
except Exception as error:
    # Without main.py, which would not run now, nothing would try again.
    sys.print_exception(error)
