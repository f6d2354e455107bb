"""Makes holes in the heap when it is imported, as loading and compiling a program leaves them.

400 objects of one to six blocks stay, each behind a hole of one to six blocks; what looks
for room has to look past all holes that are too small.
"""

import gc

kept = []


def make_holes():
    gone = []
    for k in range(400):
        gone.append(bytearray(1 + 32 * (k * 5 % 6)))
        kept.append(bytearray(1 + 32 * (k * 7 % 6)))


make_holes()
gc.collect()
