"""Ctrl-C as on a chip: an interrupt that raises KeyboardInterrupt where it does no harm.

Runs inside MicroPython.  The unix port raises it right out of its signal handler, in
whatever C code it met, and neither the garbage collector nor littlefs stands that.
So the computer's side sends SIGUSR1 and waits for an answer; the handler looks at
what it met, and lets the port's own SIGINT follow or asks to be sent again.
"""

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
_IS_OPEN = const(1)  # it may be interrupted, that is it was not a moment ago
_FLASH = const(2)  # the flash driver is at work: one of the values below
_IS_LEAVING = const(3)  # _left() is scheduled
_IS_SHIELDED = const(4)  # a shielded call is under way
_STARTS = const(5)  # the board has not come to its REPL yet
_WAITS = const(6)  # a Ctrl-C could not be served yet
_REPEATS = const(7)  # the next request is the last one once more
_state = bytearray(8)

_INSIDE = const(1)
_JUST_LEFT = const(2)

_libc = ffi.open(None)
_signal = _libc.func("p", "signal", "ip")
_raise = _libc.func("i", "raise", "i")
_mask = _libc.func("i", "sigprocmask", "ipp")
_write = _libc.func("i", "write", "ipi")

_only_sigint = bytearray(_SIGSET_BYTES)
_only_sigint[0] = 1 << (_SIGINT - 1)
_clear_probe = [].clear
_answers = 1


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
    _state[_WAITS] = 0


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
            state[_WAITS] &= state[_STARTS]
            state[_IS_OPEN] = 1
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


def shield(function, *args):
    """Call function(*args), C code on a chip: Ctrl-C is served before it or after it."""
    state = _state
    _serve_waiting(state)
    state[_IS_SHIELDED] = 1
    try:
        return function(*args)
    finally:
        state[_IS_SHIELDED] = 0


def _serve_waiting(state):
    if state[_RUNS] and state[_WAITS]:
        state[_WAITS] = 0
        raise KeyboardInterrupt


def enter_flash():
    """The flash driver, C code on a chip, begins: Ctrl-C waits."""
    _state[_FLASH] = _INSIDE


def leave_flash():
    """The driver ends; Ctrl-C waits until its caller, littlefs, is back in Python too."""
    _state[_FLASH] = _JUST_LEFT
    if not _state[_IS_LEAVING]:
        _state[_IS_LEAVING] = 1
        micropython.schedule(_left, None)


def _left(_):
    # Called between two steps of Python: the caller's, or the driver's next ones.
    _state[_IS_LEAVING] = 0
    if _state[_FLASH] == _JUST_LEFT:
        _state[_FLASH] = 0


def _reopen(_):
    _state[_IS_OPEN] = _state[_RUNS]


def _on_request(_):
    # A hard interrupt: anything may have been interrupted, and nothing may allocate.
    state = _state
    was_served = state[_REPEATS] and not state[_WAITS]
    state[_REPEATS] = 0
    if was_served:
        pass
    elif not state[_RUNS]:
        state[_WAITS] = state[_STARTS]
    elif _is_harmless_here():
        state[_WAITS] = 0
        state[_IS_OPEN] = 0
        micropython.schedule(_reopen, None)
        # Blocked here, so it comes when this handler is left, and where that came.
        _mask(_SIG_BLOCK, _only_sigint, None)
        _raise(_SIGINT)
    else:
        state[_WAITS] = 1
        state[_REPEATS] = 1
        _write(_answers, AGAIN, 1)
        return
    _write(_answers, ANSWERED, 1)


def _is_harmless_here():
    state = _state
    is_in_filesystem = state[_IS_SHIELDED] or state[_FLASH]
    return state[_IS_OPEN] and not is_in_filesystem and _is_heap_at_rest()


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
