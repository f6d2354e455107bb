"""Bytes of .mpy of the library's modules, and heap after import on a real 32-bit port.

Sizes are of the .mpy files for armv6m; they hold no native code, so they are the
same for every architecture.
"""

import shutil
import tempfile
from pathlib import Path

from tools.boards.compile import compile_library, make_romfs
from tools.boards.errors import BoardError
from tools.boards.places import LIBRARY
from tools.micropython import Interpreter, choose

_ARCH = "armv6m"
_HEAP_BYTES = 256 * 1024
FORMS = (".py", ".mpy", "ROMFS")

# Prints the heap that stays in use for `import umqtt31`.
_MEASURE = """\
import gc, sys
{prepare}
sys.path[:] = [{path!r}]
gc.collect()
before = gc.mem_alloc()
import umqtt31
{also}
gc.collect()
print(gc.mem_alloc() - before)
"""
_MOUNT = """\
import vfs
with open({image!r}, "rb") as file:
    _image = file.read()
vfs.mount(vfs.VfsRom(memoryview(_image)), "/rom")
"""


def sizes(is_built: bool = False) -> dict[str, int]:
    """{module: bytes of .mpy}; `is_built`: as `make build` makes it."""
    with tempfile.TemporaryDirectory() as name:
        compile_library(Path(name), _ARCH, is_plain=not is_built)
        return {path.stem: path.stat().st_size for path in sorted(Path(name).glob("*.mpy"))}


def heap_after_import(also: str = "", is_built: bool = False) -> dict[str, int]:
    """{form: bytes} that `import umqtt31` keeps on the heap of a 32-bit port, per form.

    `also` is a further line of Python whose heap counts, e.g. importing the journal;
    `is_built`: as boards get the library, which is no .py.  Raises BoardError.
    """
    interpreter = choose(bits=32)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        image = folder / "umqtt31.romfs"
        compile_library(folder / "mpy/lib/umqtt31", _ARCH, is_plain=not is_built)
        shutil.copytree(LIBRARY, folder / "py/umqtt31")
        image.write_bytes(make_romfs(folder / "mpy"))
        where = {".py": f"{folder}/py", ".mpy": f"{folder}/mpy/lib", "ROMFS": "/rom/lib"}
        mount = _MOUNT.format(image=str(image))
        found = {}
        for form in FORMS[1:] if is_built else FORMS:
            prepare = mount if form == "ROMFS" else ""
            program = _MEASURE.format(path=where[form], also=also, prepare=prepare)
            found[form] = _run(interpreter, program)
        return found


def _run(interpreter: Interpreter, program: str) -> int:
    done = interpreter.run(program, heap_bytes=_HEAP_BYTES, micropypath=[])
    if done.returncode:
        raise BoardError(f"MicroPython: {done.stderr.strip().splitlines()[-1]}")
    return int(done.stdout)
