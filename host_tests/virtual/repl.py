"""The virtual board's own firmware: what a port's C code does, in MicroPython.

Mounts the board's filesystem at "/", runs boot.py and main.py, then serves the
friendly and the raw REPL on stdin and stdout.  A soft reset ends the process with
a status of its own, and the computer's side starts it again.
Arguments: file descriptor for answers to Ctrl-C, "raw" or "friendly", reset cause,
flash image, MCU, port, what the board calls itself, program unit of the filesystem, start
and length of filesystem and journal in the image.
"""

import builtins
import io
import os
import sys

import chips
import interrupt
import peripherals
import vfs

import micropython

SOFT_RESET_RAW = 80
SOFT_RESET_FRIENDLY = 81

_RAW_BANNER = "raw REPL; CTRL-B to exit\r\n>"
_CTRL_C = b"\x03"


def mount(area, program_unit):
    """Make the littlefs in `area` of the flash the filesystem at "/"."""
    filesystem = vfs.VfsLfs2(area, progsize=program_unit)
    vfs.umount("/")
    vfs.mount(filesystem, "/")
    builtins.open = interrupt.shielded(open)
    os.chdir("/")
    sys.path[:] = ["", ".frozen", "/lib"]


def write(text):
    sys.stdout.write(text)


def soft_reset(is_raw):
    write("MPY: soft reboot\r\n")
    end(SOFT_RESET_RAW if is_raw else SOFT_RESET_FRIENDLY)


def end(status):
    interrupt.shut_down()
    sys.exit(status)


def unlock_heap():
    """What stopped in the middle may have left the heap locked; C code would not mind."""
    for _ in range(8):
        try:
            bytearray(256)
            return
        except MemoryError:
            micropython.heap_unlock()


def execute(source, name, names):
    exec(compile(source, name, "exec"), names)


def run_file(name, names, is_raw):
    """Run a start-up file -> whether it ended well, as one does that is not there."""
    try:
        with open(name) as file:
            source = file.read()
    except OSError:
        return True
    try:
        interrupt.run(execute, source, name, names)
    except SystemExit as exit:
        if exit.args and exit.args[0] == peripherals.DEEP_SLEEP:
            end(peripherals.DEEP_SLEEP)
        # The desk's halt() ends with a status; a board would be left at its REPL.
        if not (exit.args and exit.args[0]):
            soft_reset(is_raw)
    except BaseException as error:
        unlock_heap()
        sys.print_exception(error)
        return False
    return True


def run_command(source, names):
    """Run one raw REPL command -> the text of its exception, or ""."""
    try:
        interrupt.run(exec, source, names)
    except SystemExit:
        write("\x04\x04")
        soft_reset(True)
    except BaseException as error:
        unlock_heap()
        text = io.StringIO()
        sys.print_exception(error, text)
        return text.getvalue()
    return ""


def raw_paste(read):
    """Receive a command with flow control, a window of 256 bytes at a time."""
    write("R\x01\x00\x01")
    received = bytearray()
    while True:
        byte = read(1)
        if byte in (b"", b"\x04", _CTRL_C):
            write("\x04")
            return b"raise KeyboardInterrupt" if byte == _CTRL_C else bytes(received)
        received += byte
        if len(received) % 256 == 0:
            write("\x01")


def raw_repl(names):
    """Serve raw REPL commands until Ctrl-B."""
    read = sys.stdin.buffer.read
    write(_RAW_BANNER)
    line = bytearray()
    while True:
        byte = read(1)
        if byte == b"\x04":
            write("OK")
            if not line:
                write("\r\n")
                soft_reset(True)
            failure = run_command(bytes(line), names)
            line = bytearray()
            write("\x04" + failure + "\x04>")
        elif byte == b"\x05" and not line:
            read(2)
            write("\x04" + run_command(raw_paste(read), names) + "\x04>")
        elif byte == b"\x01":
            line = bytearray()
            write(_RAW_BANNER)
        elif byte == b"\x02":
            write("\r\n")
            return
        elif byte == _CTRL_C:
            line = bytearray()
        elif not byte:
            end(0)
        elif line or byte != b"\r":
            line += byte


def friendly_repl(names):
    """Serve lines typed by a person; Ctrl-A enters the raw REPL."""
    implementation = sys.implementation
    write("MicroPython v%d.%d.%d; virtual board\r\n>>> " % implementation[1][:3])
    line = b""
    while True:
        byte = sys.stdin.buffer.read(1)
        if byte == b"\x01":
            raw_repl(names)
            line = b""
            write(">>> ")
        elif byte == b"\x04":
            soft_reset(False)
        elif byte == b"\r":
            write("\r\n")
            write(run_command(line, names) + ">>> ")
            line = b""
        elif byte == _CTRL_C:
            line = b""
            write("\r\n>>> ")
        elif not byte:
            end(0)
        else:
            write(byte.decode())
            line += byte


def start(is_raw, names):
    """What a port does after a reset, until there is a person's or tool's turn.

    As rp2 and esp32 since MicroPython 1.22: no main.py after a boot.py that raised.
    """
    is_booted = run_file("boot.py", names, is_raw)
    if is_booted and not is_raw:
        run_file("main.py", names, False)
    interrupt.end_start()
    if is_raw:
        raw_repl(names)


def main(answers, mode, cause, image, mcu, port, machine, program_unit, *places):
    interrupt.install(int(answers))
    names = {"__name__": "__main__"}
    fs_start, fs_length, *journal = map(int, places)
    # Opened once: behind the board's own "/" the computer's files are out of reach.
    flash = open(image, "r+b")
    chips.install(port, flash, fs_start, fs_length, *journal)
    peripherals.install(mcu, int(cause), image)
    if machine:
        peripherals.name_board(machine)
    mount(chips.FlashArea(flash, fs_start, fs_length), int(program_unit))
    start(mode == "raw", names)
    friendly_repl(names)


main(*sys.argv[1:])
