"""Fixtures of the board tests: profiles, a configured device, a virtual board."""

import functools
import json

import pytest

from host_tests.boards import firmware_images
from host_tests.brokers.certificates import Certificates
from host_tests.running import said_by
from host_tests.virtual import VirtualBoard
from host_tests.virtual.cli import blank_flash
from tools.boards.cli import cli
from tools.boards.compile import build_tree, newest_source, tree_files
from tools.boards.config import device_files
from tools.boards.deploy import numbered, with_list
from tools.boards.profile import load_profile
from tools.micropython import choose


@pytest.fixture
def desk():
    return load_profile("desk")


@pytest.fixture
def make_config(tmp_path):
    """make_config(client_id="hall-1", …) -> path of a device.toml, beside the files it names."""

    def make(folder=tmp_path, **settings):
        path = folder / "device.toml"
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in settings.items()]
        path.write_text("".join(lines))
        return path

    return make


@pytest.fixture
def device_toml(make_config):
    """A device.toml that is good for every board."""
    secrets = {"password": "secret-word", "wifi_password": "secret-wifi"}
    about = {"client_id": "hall-1", "server": "127.0.0.1", "user": "u", "wifi_ssid": "net"}
    return make_config(**about, **secrets)


@pytest.fixture
def device_certificates(tmp_path):
    """A folder with ca.crt, and server.crt, one.crt, two.crt with their keys."""
    folder = tmp_path / "certificates"
    folder.mkdir()
    Certificates.usual(folder, "one", "two").lock_key("one")
    return folder


@pytest.fixture
def run():
    """run("build", "--board", "desk") -> what it prints; `status` is what it has to end with."""

    return functools.partial(said_by, cli, prog_name="boards")


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """built(name of a board) -> {path on it: bytes} of library and firmware, compiled once."""

    @functools.cache
    def build(name):
        return tree_files(build_tree(load_profile(name), tmp_path_factory.mktemp(name) / "fs"))

    return build


@pytest.fixture
def make_firmware(tmp_path):
    """make_firmware(profile) -> path of a stand-in for upstream's file."""

    def make(profile, damaged_at=None, **changes):
        path = tmp_path / "firmware"
        # As upstream since 1.27; older ones have no dash.
        chip = profile.chip.replace("ESP32", "ESP32-").removesuffix("-")
        changes.setdefault("machine", f"{profile.firmware.machine} with {chip}".encode())
        if profile.flash.method == "esptool":
            data = firmware_images.esp_firmware(changes.pop("mcu", profile.mcu), **changes)
        else:
            families = {"rp2040": firmware_images.RP2040, "rp2350": firmware_images.RP2350_ARM}
            family = changes.pop("family", families[profile.mcu])
            storage = (profile.filesystem.offset, profile.filesystem.size)
            data = firmware_images.rp2_firmware(family, changes.pop("storage", storage), **changes)
        data = bytearray(data)
        if damaged_at is not None:
            data[damaged_at] ^= 1
        path.write_bytes(data)
        return path

    return make


@pytest.fixture
def make_board(tmp_path):
    """make_board(profile, files) -> a virtual board, switched off; unplugged at the end."""
    boards = []

    def make(profile, files=None, flash=None, **cut):
        image = tmp_path / f"flash{len(boards)}.img"
        image.write_bytes(flash or blank_flash(profile, files))
        boards.append(VirtualBoard(profile, image, choose(bits=32), **cut))
        return boards[-1]

    yield make
    for board in boards:
        board.unplug()


@pytest.fixture
def make_node(make_board, built, make_config):
    """make_node(name, broker, device, **settings) -> a board with the node, as deployed."""

    def make(name, broker, device, **more):
        profile = load_profile(name)
        place = {"server": broker.host, "port": broker.port, "prefix": f"virtual-{device}"}
        settings = {"client_id": device, "store": "journal", "streams": [1], "ntp_server": ""}
        settings |= {"interval_ms": 100, "wifi_ssid": "workshop"} | place | more
        files = numbered(built(name), newest_source(profile))
        files |= device_files(make_config(**settings), profile)
        return make_board(profile, with_list(files))

    return make


@pytest.fixture
def start_board(make_board):
    """The same, switched on; in `mode` "raw" without its main.py."""

    def start(*about, mode="friendly", **more):
        board = make_board(*about, **more)
        board.power_on(mode)
        return board

    return start
