"""The virtual board's own firmware: what a port's C code does, in MicroPython.

Mounts the board's filesystem at "/", runs boot.py and main.py, then serves the
friendly and the raw REPL on stdin and stdout.  A soft reset ends the process with
a status of its own, and the computer's side starts it again.
Arguments: "raw" or "friendly", flash image, MCU, program unit of the filesystem,
start and length of filesystem and journal in the image.
"""

import io
import os
import sys

import chips
import micropython
import peripherals
import vfs

SOFT_RESET_RAW = 80
SOFT_RESET_FRIENDLY = 81

_RAW_BANNER = "raw REPL; CTRL-B to exit\r\n>"


def mount(area, program_unit):
    """Make the littlefs in `area` of the flash the filesystem at "/"."""
    filesystem = vfs.VfsLfs2(area, progsize=program_unit)
    vfs.umount("/")
    vfs.mount(filesystem, "/")
    os.chdir("/")
    sys.path[:] = ["", ".frozen", "/lib"]


def write(text):
    sys.stdout.write(text)


def soft_reset(is_raw):
    write("MPY: soft reboot\r\n")
    sys.exit(SOFT_RESET_RAW if is_raw else SOFT_RESET_FRIENDLY)


def unlock_heap():
    """What stopped in the middle may have left the heap locked; C code would not mind."""
    for _ in range(8):
        try:
            bytearray(256)
            return
        except MemoryError:
            micropython.heap_unlock()


def run_file(name, names):
    """Run a start-up file if it is there; an exception ends it, not the board."""
    try:
        with open(name) as file:
            source = file.read()
    except OSError:
        return
    try:
        exec(compile(source, name, "exec"), names)
    except SystemExit as end:
        # The desk's halt() ends with a status; a board would be left at its REPL.
        if not (end.args and end.args[0]):
            soft_reset(False)
    except BaseException as error:
        unlock_heap()
        sys.print_exception(error)


def run_command(source, names):
    """Run one raw REPL command -> the text of its exception, or ""."""
    try:
        exec(source, names)
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
        if byte in (b"", b"\x04"):
            write("\x04")
            return bytes(received)
        received += byte
        if len(received) % 256 == 0:
            write("\x01")


def raw_repl(names):
    """Serve raw REPL commands until Ctrl-B."""
    read = sys.stdin.buffer.read
    write(_RAW_BANNER)
    line = bytearray()
    while True:
        try:
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
            elif not byte:
                sys.exit(0)
            elif line or byte != b"\r":
                line += byte
        except KeyboardInterrupt:
            line = bytearray()


def friendly_repl(names):
    """Serve lines typed by a person; Ctrl-A enters the raw REPL."""
    implementation = sys.implementation
    write("MicroPython v%d.%d.%d; virtual board\r\n>>> " % implementation[1][:3])
    line = b""
    while True:
        try:
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
            elif not byte:
                sys.exit(0)
            else:
                write(byte.decode())
                line += byte
        except KeyboardInterrupt:
            line = b""
            write("\r\n>>> ")


def start(mode, names):
    """What a port does after a reset, until there is a person's or tool's turn."""
    # From here on Ctrl-C is survived; the computer's side waits for this byte.
    write("\x00")
    run_file("boot.py", names)
    if mode == "raw":
        raw_repl(names)
    else:
        run_file("main.py", names)


def survive(step, *args):
    try:
        step(*args)
    except KeyboardInterrupt:
        pass


def main(mode, image, mcu, program_unit, fs_start, fs_length, *journal):
    names = {"__name__": "__main__"}
    fs_start, fs_length = int(fs_start), int(fs_length)
    # Opened once: behind the board's own "/" the computer's files are out of reach.
    flash = open(image, "r+b")
    chips.install(mcu, flash, fs_start, fs_length, *map(int, journal))
    peripherals.install(mcu)
    mount(chips.FlashArea(flash, fs_start, fs_length), int(program_unit))
    survive(start, mode, names)
    while True:
        survive(friendly_repl, names)


main(*sys.argv[1:])
