"""Batches: many images from one base, a manifest, and no secret where it does not belong."""

import hashlib
import json
import os
import signal
import subprocess
import sys

import pytest

from host_tests.boards.test_image import files_on, flash_content
from host_tests.patience import SECONDS, until
from host_tests.standin.ramflash import RamFlash
from tools.boards.config import JOURNAL_PACKET, device_files, read_config
from tools.boards.errors import BoardError
from tools.boards.places import write_private
from tools.boards.profile import load_profile
from tools.boards.provision import read_batch
from tools.project import ROOT
from umqtt31 import Journal

HEAD = "id,user,password,broker,site\n"
SHARED = 'wifi_ssid = "net"\nwifi_password = "secret-wifi"\n'


@pytest.fixture
def shared(tmp_path):
    path = tmp_path / "shared.toml"
    path.write_text(SHARED)
    return path


def test_private_file_is_private_where_one_lay_before(tmp_path):
    """An image that replaced one of mode 0644, with the passwords in it, kept that mode."""
    path, other = tmp_path / "one.uf2", tmp_path / "other"
    path.write_bytes(b"old")
    path.chmod(0o644)
    other.hardlink_to(path)
    write_private(path, b"new")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o600)
    assert other.read_bytes() == b"old"


@pytest.mark.parametrize("board", ["RPI_PICO_W", "ESP32_GENERIC_C3"])
def test_provision_makes_each_device_its_own_image_and_manifest(
    run, make_firmware, tmp_path, shared, board
):
    profile = load_profile(board)
    rows = [f"dev-{i},user{i},secret-{i},10.0.0.{i},hall\n" for i in range(1, 8)]
    (tmp_path / "devices.csv").write_text(HEAD + "".join(rows))
    out = tmp_path / "images"
    output = run(
        "provision",
        *("--board", board, "--firmware", make_firmware(profile), "--config", shared),
        *("--batch", tmp_path / "devices.csv", "--out", out),
    )
    assert "secret" not in output
    manifest = (out / "manifest.json").read_text()
    assert "secret" not in manifest
    devices = json.loads(manifest)["devices"]
    assert [one["client_id"] for one in devices] == [f"dev-{i}" for i in range(1, 8)]
    for i, one in enumerate(devices, start=1):
        path = out / one["file"]
        assert path.stat().st_mode & 0o077 == 0
        data = path.read_bytes()
        assert hashlib.sha256(data).hexdigest() == one["sha256"]
        files = files_on(flash_content(data, profile), profile.filesystem)
        settings = json.loads(files["settings.json"])
        found = [settings[key] for key in ("client_id", "password", "server", "wifi_ssid")]
        assert found == [f"dev-{i}", f"secret-{i}", f"10.0.0.{i}", "net"]


def test_provision_that_is_interrupted_ends_at_once_without_a_traceback(
    make_firmware, tmp_path, shared
):
    """It made all images first, and each process that made them printed a traceback."""
    firmware = make_firmware(load_profile("RPI_PICO_W"))
    (tmp_path / "devices.csv").write_text("id,broker\n" + "".join(f"d{i},b\n" for i in range(300)))
    command = [sys.executable, "-m", "tools", "boards", "provision", "--board", "RPI_PICO_W"]
    command += ["--firmware", firmware, "--config", shared, "--batch", tmp_path / "devices.csv"]
    command += ["--out", tmp_path / "images"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, **pipes)
    until(lambda: any(tmp_path.glob("images/*")))
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=SECONDS)
    assert output.endswith("Aborted!\n")
    assert "Traceback" not in output
    assert len(list(tmp_path.glob("images/*"))) < 300


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEAD + "a,,,b,\nc,,,b,\na,,,b,\n", "line 4: client id 'a' is already on line 2"),
        (HEAD + "x23456789012345678901234,,,b,\n", "line 2: client_id"),
        (HEAD + "a,,secret-1,b,\n", "line 2: user is missing"),
        ("id,colour\na,red\n", "unknown column 'colour', allowed: id, broker"),
        ("user,broker\na,b\n", "no column id"),
        # The cells behind it moved to other keys, and passwords became user names.
        ("id,user,user,password\na,u,u,secret-1\n", "column 'user' twice, allowed: id, broker"),
        ("id,broker,server\na,b,c\n", "column 'server' twice"),
        (HEAD, "no devices"),
        ("", "no column id"),
        ("id,broker,port\na,b,many\n", 'line 2: port is "many"'),
        (HEAD + "a,,,b,\n" * 9, "and 3 more"),
    ],
)
def test_read_batch_with_mistake_names_the_line(tmp_path, shared, text, expected):
    path = tmp_path / "devices.csv"
    path.write_text(text)
    with pytest.raises(BoardError) as caught:
        read_batch(path, load_profile("RPI_PICO_W"), shared)
    assert expected in caught.value.message
    assert "secret" not in caught.value.message


def test_read_batch_takes_any_settings_key_as_column(tmp_path, shared):
    path = tmp_path / "devices.csv"
    path.write_text("id,broker,port,streams\na,b,8883,0 1 2\n")
    device = read_batch(path, load_profile("RPI_PICO_W"), shared)[0]
    assert device["port"] == 8883
    assert device["streams"] == [0, 1, 2]


def test_provision_gives_each_device_its_own_key_and_nobody_else_s(
    run, make_firmware, tmp_path, shared, device_certificates
):
    """Certificates lie beside the batch, what all share beside device.toml."""
    profile = load_profile("RPI_PICO_W")
    path = tmp_path / "batch" / "devices.csv"
    path.parent.mkdir()
    path.write_text("id,broker,tls_cert,tls_key\n" + "".join(
        f"{name},b,{name}.crt,{name}.key\n" for name in ("one", "two")
    ))  # fmt: skip
    for name in ("one.crt", "one.key", "two.crt", "two.key"):
        (path.parent / name).write_bytes((device_certificates / name).read_bytes())
    shared.write_text(SHARED + 'tls = "ca.crt"\n')
    authority = (device_certificates / "ca.crt").read_bytes()
    (tmp_path / "ca.crt").write_bytes(authority)
    out = tmp_path / "images"
    words = ("--firmware", make_firmware(profile), "--batch", path, "--out", out)
    run("provision", "--board", "RPI_PICO_W", *words, "--config", shared)
    for name, other in (("one", "two"), ("two", "one")):
        flash = flash_content((out / f"{name}.uf2").read_bytes(), profile)
        files = files_on(flash, profile.filesystem)
        assert files["ca.crt"] == authority
        for kind in ("crt", "key"):
            assert files[f"{name}.{kind}"] == (path.parent / f"{name}.{kind}").read_bytes()
            assert f"{other}.{kind}" not in files


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("two.key", "one.crt, two.key: the key is not the certificate's"),
        ("one.locked.key", "one.crt, one.locked.key: not a certificate and its key, without"),
        ("ca.crt", "one.crt, ca.crt: not a certificate and its key, without password, as PEM"),
        ("lost.key", "tls_key: there is no lost.key in "),
        ("one.key.der", None),  # what Python cannot read is not judged
    ],
)
def test_certificate_and_key_that_do_not_fit_are_told_before_a_board_gets_them(
    device_certificates, make_config, key, told
):
    files = {"tls": "ca.crt", "tls_cert": "one.crt", "tls_key": key}
    path = make_config(device_certificates, client_id="one", server="b", level=4, **files)
    if told is None:
        assert set(device_files(path, load_profile("desk"))) == {
            *("settings.json", "ca.crt", "one.crt", "one.key.der"),
        }
        return
    with pytest.raises(BoardError) as caught:
        device_files(path, load_profile("desk"))
    assert caught.value.message.startswith(told)
    assert "PRIVATE" not in caught.value.message and "None" not in caught.value.message


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"store": "journal"},
         f"buffer_size is 4096; allowed with the journal: up to {JOURNAL_PACKET}"),
        ({"max_inflight": 64, "max_mqueue_len": 1024},
         "max_inflight and max_mqueue_len messages of buffer_size are 4,456,448 bytes; "
         "allowed on RPI_PICO_W: 71,936"),
    ],
)  # fmt: skip
def test_settings_that_the_board_has_no_room_for_are_refused_before_it_is_touched(
    make_config, settings, told
):
    """The check on the board came when its old files were gone."""
    about = {"client_id": "a", "server": "b", "wifi_ssid": "c", "buffer_size": 4096}
    path = make_config(**about | settings)
    with pytest.raises(BoardError) as caught:
        read_config(path, load_profile("RPI_PICO_W"))
    assert caught.value.message == f"{path}: {told}"


def test_journal_takes_packets_up_to_what_settings_allow_with_it():
    Journal(RamFlash(16)).open(b"1" * 23, 4, JOURNAL_PACKET, 80, None, [0, 0, 0], 80)
    with pytest.raises(ValueError, match="need larger erase_bytes"):
        Journal(RamFlash(16)).open(b"1", 4, JOURNAL_PACKET + 1, 80, None, [0, 0, 0], 80)
