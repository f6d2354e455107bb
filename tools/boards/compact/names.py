"""Which names are short: MicroPython's own, that cost a byte in a file and nothing in RAM.

A .mpy file holds each of its names once, and MicroPython keeps each that its firmware
does not know on the heap.  The names below are numbers in the format of .mpy itself, so
as the name of an attribute `IndexError` is shorter than `x`.
"""

import itertools
import string

# In the order of their numbers: up to `bool` one byte, then two.  No program names an
# attribute of its own so, not even in a subclass of our classes.
UNLIKELY = """
ArithmeticError AssertionError AttributeError BaseException EOFError Ellipsis Exception
GeneratorExit ImportError IndentationError IndexError KeyError KeyboardInterrupt
LookupError MemoryError NameError NoneType NotImplementedError OSError OverflowError
RuntimeError StopIteration SyntaxError SystemExit TypeError ValueError ZeroDivisionError
abs all any bool
bytearray bytecode builtins callable chr classmethod dict divmod endswith from_bytes
getattr globals hasattr int isalpha isdigit isinstance islower isspace issubclass isupper
locals lstrip ord popitem pow rfind rindex rsplit rstrip setattr setdefault startswith
staticmethod str to_bytes tuple
""".split()
# The same, for classes that no program derives from.
OTHERS = """
append args bytes const copy count dir end eval exec extend find format get hash id index
insert items iter join key keys len list little lower main map micropython next object
open pop print range readline remove repr replace reverse round self send sep set sort
sorted split start step stop strip sum super throw type update upper value values zip
""".split()
OTHERS += [*string.ascii_lowercase, *string.ascii_uppercase]  # these cost three bytes
# For what stands in a module: `from umqtt31 import *` leaves out what begins with "_".
HIDDEN = """
_ __call__ __delitem__ __enter__ __exit__ __getitem__ __hash__ __int__ __iter__ __len__
__main__ __new__ __next__ __repr__ __setitem__ __str__
""".split()
EVERYWHERE = "*"  # the group that meets all others


def unlikely():
    """-> an endless supply of names that no program has in a subclass: IndexError … _0 …"""
    return itertools.chain(UNLIKELY, (f"_{number}" for number in itertools.count()))


def made_up():
    """-> an endless supply of names that are short, but cost their letters: _a, _b …"""
    letters = string.ascii_lowercase + string.ascii_uppercase
    for length in itertools.count(1):
        for word in itertools.product(letters, repeat=length):
            yield "_" + "".join(word)


def allot(wanted, pools, taken, holders):
    """Give each key of `wanted` {key: groups} a name, so that no two keys with a group in
    common have the same one -> {key: name}.

    `pools` {key: names in the order of preference}; `taken` names are given to nobody;
    `holders` {name: groups in which it is given} is looked at and kept up to date.  The
    keys that come first in `wanted` choose first.
    """
    given = {}
    for key, groups in wanted.items():
        for name in itertools.chain(pools[key], made_up()):
            if name not in taken and not _meet(groups, holders[name]):
                break
        holders[name] |= groups
        given[key] = name
    return given


def _meet(groups, others):
    is_everywhere = EVERYWHERE in groups or EVERYWHERE in others
    return bool(others) if is_everywhere and groups else bool(groups & others)
