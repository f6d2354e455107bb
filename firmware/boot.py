"""Runs first after every reset: what must be in place before anything can fail."""

import micropython

import update

# Errors raised while the heap is locked, or by an interrupt, keep their number.
# The unix port has room for them built in and so lacks the function.
if hasattr(micropython, "alloc_emergency_exception_buf"):
    micropython.alloc_emergency_exception_buf(128)

# New files that `make deploy` left are moved into place, should the power have
# gone in between.
update.finish()
