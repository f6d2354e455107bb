"""Mistakes of earlier versions that the simulator cannot see, put back one by one: the test
that found each still does.  `host_tests/sim/wrong_clients.py` has those that it can see.
"""

import shutil

import pytest

import umqtt31
from host_tests.client import dialogue
from host_tests.client.dialogues.sending import test_computed
from host_tests.client.runner import FOLDER
from host_tests.client.scripts import read_scripts
from tools.project import ROOT
from umqtt31 import MQTTClient

FAT = ROOT / "host_tests" / "journal" / "device" / "fat.py"


def _bytes_of_anything(as_bytes):
    def wrong(name, value):
        return bytes(value) if isinstance(value, list) else as_bytes(name, value)

    return wrong


def _items_for_bytes(as_bytes):
    def wrong(name, value):
        if getattr(value, "itemsize", 1) > 1:
            return bytes(value)[: len(value)]
        return as_bytes(name, value)

    return wrong


def _as_if_granted(granted):
    def wrong(client, request):
        return list(request[2])

    return wrong


def script(file, name):
    """-> what plays the script of this name at level 4."""
    (found,) = [one for one in read_scripts(FOLDER / "dialogues" / file) if one.name == name]
    return lambda: found.play(4)


MISTAKES = {
    "list as payload": (
        umqtt31, "as_bytes", _bytes_of_anything,
        script("sending/publish.txt", "message_of_another_type_is_a_type_error_that_names_it"),
    ),
    "half of an array": (
        umqtt31, "as_bytes", _items_for_bytes,
        test_computed.test_payload_of_wide_elements_goes_out_whole_or_not_at_all,
    ),
    "refused and as if granted": (
        MQTTClient, "_granted", _as_if_granted,
        script("connection/errors.txt", "subscribe_that_is_refused_raises_and_is_not_remembered"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_found_again(name, monkeypatch):
    owner, method, change, test = MISTAKES[name]
    monkeypatch.setattr(dialogue, "default_level", 4)
    test()
    monkeypatch.setattr(owner, method, change(getattr(owner, method)))
    with pytest.raises(AssertionError):
        test()


def test_journal_on_fat_is_found_to_lose_messages_where_it_is_not_refused(micropython, tmp_path):
    shutil.copytree(ROOT / "lib", tmp_path / "lib")
    path = tmp_path / "lib" / "umqtt31" / "fileblockdevice.py"
    source = path.read_text()
    assert source.count("if _is_on_fat(path):") == 1
    path.write_text(source.replace("if _is_on_fat(path):", "if False:"))
    done = micropython.run(FAT, heap_bytes=4 << 20, micropypath=[ROOT, tmp_path / "lib"])
    cuts, _, wrong, _ = done.stdout.split()
    assert int(cuts) > 80 and int(wrong) > 0
