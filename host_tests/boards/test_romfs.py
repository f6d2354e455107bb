"""The ROMFS image of library and firmware."""

import pytest

from tools.boards.compile import build_tree, tree_files
from tools.boards.profile import load_profile
from tools.boards.romfs import make_romfs

# Mounts the image and makes a client of what is in it.
ROMFS = """\
import sys, vfs
with open(sys.argv[1], "rb") as file:
    image = memoryview(file.read())
vfs.mount(vfs.VfsRom(image), "/rom")
sys.path[:] = ["/rom", "/rom/lib"]
import umqtt31
from umqtt31 import Journal, MQTTClient
import settings, reading
print(umqtt31.__file__, bool(MQTTClient("id", "server")))
"""


@pytest.mark.parametrize("name", ["RPI_PICO2_W", "ESP32_GENERIC"])
def test_romfs_is_mounted_by_micropython_and_runs_in_place(micropython, tmp_path, name):
    image = tmp_path / "image.romfs"
    image.write_bytes(make_romfs(tree_files(build_tree(load_profile(name), tmp_path / "fs"))))
    done = micropython.run(ROMFS, args=[image], micropypath=[])
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["/rom/lib/umqtt31/__init__.mpy", "True"]
