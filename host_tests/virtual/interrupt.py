"""Ctrl-C as on a chip: an interrupt that raises KeyboardInterrupt where it does no harm.

Runs inside MicroPython.  The unix port raises it right out of its signal handler, in
whatever C code it met, and neither the garbage collector nor littlefs stands that.
So the computer's side sends SIGUSR1 and waits for an answer; the handler looks at
what it met, and lets the port's own SIGINT follow or asks to be sent again.
"""

import builtins

import ffi

import micropython
from micropython import const

READY = b"R"
ANSWERED = b"S"
AGAIN = b"A"

_SIGINT = const(2)
_SIGUSR1 = const(10)
_SIG_BLOCK = const(0)
_SIG_IGN = const(1)
_SIGSET_BYTES = const(128)

# Places in _state.
_RUNS = const(0)  # a program of the user's runs
_WAS_MET = const(1)  # Ctrl-C met it a moment ago, and may not have ended it yet
_IS_SHIELDED = const(2)  # a shielded call is under way
_FLASH_CALLS = const(3)  # how often the flash driver was at work, modulo 256
_SEEN_CALLS = const(4)  # the same when last looked at
_STARTS = const(5)  # the board has not come to its REPL yet
_WAITS = const(6)  # a Ctrl-C could not be served yet
_REPEATS = const(7)  # how often the request for it came, but for the first time
_state = bytearray(8)

# Not 0 while the flash driver, C code on a chip, is at work.
flash_at_work = bytearray(1)

# Between two requests a program gets much further than it takes to end it, or to
# return from the flash driver through littlefs; three are for good measure.
_ENDED_REPEATS = const(3)
# A program that does nothing but write to open files would never be met outside.
_MOST_REPEATS = const(250)

_libc = ffi.open(None)
_signal = _libc.func("p", "signal", "ip")
_raise = _libc.func("i", "raise", "i")
_mask = _libc.func("i", "sigprocmask", "ipp")
_write = _libc.func("i", "write", "ipi")

_only_sigint = bytearray(_SIGSET_BYTES)
_only_sigint[0] = 1 << (_SIGINT - 1)
_clear_probe = [].clear
_answers = 1
_import = __import__
# An entry there from the start, so that the handler has no need to allocate it.
builtins.__import__ = _import


def install(answers):
    """Serve Ctrl-C from now on; the answers go to the file descriptor `answers`."""
    global _answers, _handler
    _answers = answers
    _handler = ffi.callback("v", _on_request, "i", lock=True)
    _signal(_SIGUSR1, _handler.cfun())
    _state[_STARTS] = 1
    _write(_answers, READY, 1)


def end_start():
    """From now on Ctrl-C that meets no program is nothing but a byte on stdin."""
    _state[_STARTS] = 0
    _let_wait(False)


def shut_down():
    """The process ends, and the handler's memory with it: no more answers."""
    _signal(_SIGUSR1, _SIG_IGN)


def run(function, *args):
    """Call function(*args), a program of the user's, and let Ctrl-C interrupt it.

    Only in there, and until here it is over: once this returns or raises, no
    KeyboardInterrupt follows.
    """
    state = _state  # an exception right out of exec() may leave its globals in place
    try:
        try:
            # At the REPL it was meant for the program before.
            _let_wait(state[_WAITS] and state[_STARTS])
            state[_WAS_MET] = 0
            state[_RUNS] = 1
            _serve_waiting(state)
            function(*args)
        finally:
            state[_RUNS] = 0
    except:
        # Ctrl-C may have met the line above.  Before this one nothing runs, not even
        # a comparison of exceptions.
        state[_RUNS] = 0
        raise


def shielded(function):
    """C code on a chip, like `function`: Ctrl-C is served before it or after it."""

    def call(*args, **options):
        _serve_waiting(_state)
        _state[_IS_SHIELDED] = 1
        try:
            return function(*args, **options)
        finally:
            _state[_IS_SHIELDED] = 0

    return call


def put_off():
    """A KeyboardInterrupt came in the flash driver; let it come later."""
    _let_wait(True)
    _state[_REPEATS] = 1
    _write(_answers, AGAIN, 1)


def _serve_waiting(state):
    if state[_RUNS] and state[_WAITS]:
        _let_wait(False)
        raise KeyboardInterrupt


def _let_wait(does_wait):
    # What waits is served by the next import, too.  Its own function has to be called
    # by whom it imports for, so the other one is not in place all the time.
    _state[_WAITS] = 1 if does_wait else 0
    builtins.__import__ = _serve_by_import if does_wait else _import


def _serve_by_import(*args):
    _let_wait(False)
    raise KeyboardInterrupt


def count_flash_call():
    """The driver was at work; its caller, littlefs, may still be."""
    _state[_FLASH_CALLS] = (_state[_FLASH_CALLS] + 1) & 0xFF


def _on_request(_):
    # A hard interrupt: anything may have been interrupted, and nothing may allocate.
    state = _state
    if state[_REPEATS] and not state[_WAITS]:
        pass  # it was served since
    elif not state[_RUNS]:
        _let_wait(state[_STARTS])
    elif _is_harmless_here(state):
        _let_wait(False)
        state[_WAS_MET] = 1
        # Blocked here, so it comes when this handler is left, and where that came.
        _mask(_SIG_BLOCK, _only_sigint, None)
        _raise(_SIGINT)
    else:
        _let_wait(True)
        state[_REPEATS] = min(state[_REPEATS] + 1, _MOST_REPEATS)
        _write(_answers, AGAIN, 1)
        return
    state[_REPEATS] = 0
    _write(_answers, ANSWERED, 1)


def _is_harmless_here(state):
    if state[_WAS_MET] and state[_REPEATS] < _ENDED_REPEATS:
        return False
    was_in_flash = state[_FLASH_CALLS] != state[_SEEN_CALLS]
    state[_SEEN_CALLS] = state[_FLASH_CALLS]
    if flash_at_work[0] or state[_IS_SHIELDED]:
        return False
    return (not was_in_flash or state[_REPEATS] >= _MOST_REPEATS) and _is_heap_at_rest()


def _is_heap_at_rest():
    # The handler's own lock has to go for a moment.  Clearing a list that is empty
    # keeps its memory as it is, but fails while a collection is under way.
    is_at_rest = micropython.heap_unlock() > 0
    if not is_at_rest:
        try:
            _clear_probe()
            is_at_rest = True
        except MemoryError:
            pass
    micropython.heap_lock()
    return is_at_rest
