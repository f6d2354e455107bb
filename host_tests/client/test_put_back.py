"""Mistakes of earlier versions that the simulator cannot see, put back one by one: the test
that found each still does.  `host_tests/sim/wrong_clients.py` has those that it can see.
"""

import shutil

import pytest

import umqtt31
from host_tests.client.dialogues.sending import test_computed
from host_tests.client.runner import FOLDER
from host_tests.client.scripts import read_scripts
from tools.project import ROOT
from umqtt31 import MQTTClient

CUTS = ROOT / "host_tests" / "journal" / "device" / "cuts.py"


def list_as_payload(name, value, real=umqtt31.as_bytes):
    return bytes(value) if isinstance(value, list) else real(name, value)


def half_of_an_array(name, value, real=umqtt31.as_bytes):
    is_wide = getattr(value, "itemsize", 1) > 1
    return bytes(value)[: len(value)] if is_wide else real(name, value)


def refused_as_if_granted(client, request):
    return list(request[2])


def script(file, name):
    """-> what plays the script of this name at level 4."""
    (found,) = [one for one in read_scripts(FOLDER / "dialogues" / file) if one.name == name]
    return lambda: found.play(4)


@pytest.mark.parametrize("level", [4], indirect=True)
@pytest.mark.parametrize(
    ("owner", "name", "wrong", "test"),
    [
        (
            umqtt31, "as_bytes", list_as_payload,
            script("sending/publish.txt", "message_of_another_type_is_a_type_error_that_names_it"),
        ),
        (
            umqtt31, "as_bytes", half_of_an_array,
            test_computed.test_payload_of_wide_elements_goes_out_whole_or_not_at_all,
        ),
        (
            MQTTClient, "_granted", refused_as_if_granted,
            script(
                "connection/errors.txt", "subscribe_that_is_refused_raises_and_is_not_remembered"
            ),
        ),
    ],
)  # fmt: skip
def test_mistake_is_found_again(owner, name, wrong, test, level, monkeypatch):
    test()
    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(AssertionError):
        test()


def test_journal_on_fat_is_found_to_lose_messages_where_it_is_not_refused(micropython, tmp_path):
    shutil.copytree(ROOT / "lib", tmp_path / "lib")
    path = tmp_path / "lib" / "umqtt31" / "fileblockdevice.py"
    source = path.read_text()
    assert source.count("if _is_on_fat(path):") == 1
    path.write_text(source.replace("if _is_on_fat(path):", "if False:"))
    paths = [ROOT, tmp_path / "lib"]
    done = micropython.run(CUTS, args=("fat", 0, 1), heap_bytes=4 << 20, micropypath=paths)
    cuts, _, wrong, _ = done.stdout.splitlines()[-1].split()
    assert int(cuts) > 80 and int(wrong) > 0
