"""FileBlockDevice under CPython: the protocol, and a process killed at any moment."""

import os
import random
import signal
import subprocess
import sys

import pytest

from host_tests.journal.steps import found, opened
from tools.project import ROOT
from umqtt31 import FileBlockDevice, MQTTError, fileblockdevice

LIBRARY = ROOT / "lib"

# Tells the id of each message when it is accepted, and again when it is done.
NODE = """
import sys
sys.path.insert(0, sys.argv[1])
from umqtt31 import FileBlockDevice, Journal

ring = bytearray(600)
journal = Journal(FileBlockDevice(sys.argv[2], 6, 4096))
count, _, packet_id, _ = journal.open(b"node", 3, 64, 8, None, [0, 0, 0], 600)
here = []
for _ in range(count):
    journal.fetch(ring, 0)
    here.append(ring[3] << 8 | ring[4])
while True:
    if len(here) == 8:
        journal.note(0x40, here.pop(0))
    packet_id += 1
    ring[:6] = bytes((0x40, 0, 40, packet_id >> 8, packet_id & 255, packet_id & 255))
    assert journal.put(ring, 0, 45, True, False)
    here.append(packet_id)
    sys.stdout.write("%d\\n" % packet_id)
    sys.stdout.flush()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.img"


def device_of(path, blocks=2):
    return FileBlockDevice(str(path), blocks, 512)


def test_new_file_is_erased_flash_of_the_size_asked_for(path):
    device = device_of(path, 3)
    assert (device.ioctl(4, 0), device.ioctl(5, 0)) == (3, 512)
    device.close()
    assert path.read_bytes() == b"\xff" * 1536


def test_file_cut_short_while_it_was_made_is_filled_up_and_kept(path):
    path.write_bytes(b"begun")
    device_of(path).close()
    assert path.read_bytes() == b"begun" + b"\xff" * 1019


def test_file_that_cannot_be_opened_just_now_is_not_made_anew(path, monkeypatch):
    device_of(path, 1).close()
    path.write_bytes(b"\x01" * 512)
    modes = []

    def open_none(name, mode):
        modes.append(mode)
        raise OSError(23, "too many open files")

    monkeypatch.setattr(fileblockdevice, "open", open_none, raising=False)
    with pytest.raises(OSError, match="too many"):
        device_of(path, 1)
    assert modes == ["r+b"]


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "4", None])
def test_sizes_that_are_none_are_refused_and_no_file_is_made(path, wrong):
    for sizes in ((wrong, 4096), (4, wrong)):
        with pytest.raises((TypeError, ValueError), match="block_count and block_size"):
            FileBlockDevice(str(path), *sizes)
    assert not path.exists()


def test_larger_file_is_used_from_its_start_and_left_alone_beyond(path):
    path.write_bytes(bytes(2000))
    device = device_of(path, 3)
    device.ioctl(6, 2)
    device.close()
    assert path.read_bytes() == bytes(1024) + b"\xff" * 512 + bytes(464)


def test_journal_in_a_file_opened_once_with_another_size_goes_on_with_the_old_one(path):
    """It was neither the larger journal's nor the smaller one's any more."""
    opened(FileBlockDevice(str(path), 6, 4096)).put(7)
    for blocks in (8, 4):
        with pytest.raises(MQTTError, match="another layout"):
            opened(FileBlockDevice(str(path), blocks, 4096))
    assert found(FileBlockDevice(str(path), 6, 4096)).ids == [7]


def test_all_that_was_written_is_in_the_file_and_durable_on_return(path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    device = device_of(path)
    assert len(synced) == 1
    device.writeblocks(1, b"written", 5)
    assert len(synced) == 2
    assert path.read_bytes()[517:524] == b"written"
    buf = bytearray(9)
    device.readblocks(1, buf, 4)
    assert bytes(buf) == b"\xffwritten\xff"
    assert device.ioctl(6, 1) == 0
    assert len(synced) == 3
    assert path.read_bytes() == b"\xff" * 1024
    assert device.ioctl(3, 0) == 0
    assert len(synced) == 4
    device.ioctl(4, 0)
    assert len(synced) == 4


def test_closed_device_is_used_no_more(path):
    device = device_of(path)
    device.close()
    with pytest.raises(ValueError):
        device.readblocks(0, bytearray(9))


def test_process_killed_at_random_moments_keeps_what_it_accepted(path):
    moments = random.Random(31)
    newest = 0
    for _ in range(12):
        node = subprocess.Popen(
            [sys.executable, "-c", NODE, str(LIBRARY), str(path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(moments.randrange(1, 60)):
            newest = int(node.stdout.readline())
        os.kill(node.pid, signal.SIGKILL)
        rest = node.stdout.read().split()
        node.wait()
        newest = int(rest[-1]) if rest else newest
        device = FileBlockDevice(str(path), 6, 4096)
        after = found(device, client_id=b"node", slots=8, slot_bytes=64)
        device.close()
        # One more may have been accepted without being told.
        assert after.last_id in (newest, newest + 1)
        assert after.ids == [*range(after.ids[0], after.last_id + 1)]
        assert len(after.ids) >= min(7, newest)
