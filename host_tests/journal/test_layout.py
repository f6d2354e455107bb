"""docs/reference/journal-format.md against an image, and the reader of images against recovery."""

import re

import pytest

from host_tests.journal.steps import found, opened
from host_tests.powercut.life import Life, Message, State, found_on
from host_tests.powercut.scenarios import scenarios
from host_tests.running import said_by
from host_tests.standin.nor import Flash
from tools.journal.cli import cli
from tools.journal.layout import read_log
from tools.project import ROOT

DOCUMENT = ROOT / "docs" / "reference" / "journal-format.md"


def page_in_the_document():
    lines = re.findall(r"^([0-9a-f]{4})  ((?:[0-9a-f]{2} ?){16})$", DOCUMENT.read_text(), re.M)
    assert [int(at, 16) for at, _ in lines] == [*range(0, 256, 16)]
    return bytes.fromhex("".join(text for _, text in lines))


def example():
    journal = opened(16, slots=20)
    journal.put(1, 1, b"\x32\x0b\0\x03t/1\0\x0121.5")
    journal.do("renew 1; online; remove 1")
    journal.put(2, 2, b"\x34\x09\0\x03t/2\0\x02on")
    return bytes(journal.do("pubrec 2; hold 9; hold 10; release 9; commit").flash.data)


def test_example_in_the_document_is_what_the_journal_writes():
    assert example()[:256] == page_in_the_document()


def test_bytes_explained_in_the_document_stand_where_it_says():
    page = page_in_the_document()
    rows = re.findall(r"^\| ([0-9a-f]{4}) \| ((?:`[0-9a-f ]+` ?)+)\|", DOCUMENT.read_text(), re.M)
    assert len(rows) > 10
    for at, text in rows:
        there = bytes.fromhex(text.replace("`", ""))
        assert page[int(at, 16) :][: len(there)] == there, at


def test_example_in_the_document_decodes_and_recovers():
    image = page_in_the_document() + b"\xff" * (16 * 4096 - 256)
    log = read_log(image)
    assert log.layout == (256, 64, 16, 16, b"node-17")
    assert [[r.kind for r in group.records] for group in log.groups] == [
        [],  # the title
        ["message"],
        ["renew", "online", "done", "message"],
        ["pubrec", "hold", "hold", "release"],
    ]
    (message,) = log.messages()
    assert (message.packet_id, message.qos, message.has_pubrec) == (2, 2, True)
    assert message.packet == b"\x34\x09\0\x03t/2\0\x02on"
    assert (log.held, log.last_id, log.unreadable) == ({10}, 2, [])
    assert (log.level, log.is_clean) == (3, True)
    recovered = str(found(Flash(16, image=image)))
    assert recovered == "<2q2:34090003r; held [10]; last id 2, clean>"


@pytest.mark.parametrize("scenario", [*scenarios()], ids=lambda scenario: scenario.name)
def test_reader_and_recovery_agree_at_every_operation(scenario):
    images = []
    flash = scenario.setting.flash()
    flash.watch = lambda at, before, after: images.append(bytes(flash.data))
    life = Life(scenario.setting, flash)
    for call in scenario.calls:
        life.do(*call)
    for image in images[4:]:
        log = read_log(image)
        messages = tuple(
            Message(r.packet_id, r.qos, r.packet, r.has_pubrec, r.maybe_sent)
            for r in log.messages()
        )
        state = State(messages, tuple(sorted(log.held)), log.last_id, log.is_clean)
        assert found_on(scenario.setting, image) == state


SUMMARY = (
    "1 messages, received ids 10, last packet id 2, level 3, clean session, 0 pages unreadable"
)
MESSAGE = "message 1: packet id 2, QoS 2, PUBREC came, topic t/2, 2 bytes 6f6e"
SPOILT = bytearray(example())
SPOILT[0xD1] ^= 4


@pytest.mark.parametrize(
    ("command", "image", "status", "said"),
    [
        ("dump", example(), 0, ("journal of 'node-17'", SUMMARY, MESSAGE)),
        ("check", example(), 0, ()),
        ("check", SPOILT, 1, ("page at 0x000000 cannot be read",)),
        ("check", b"", 1, ("no journal in these",)),
        ("check", b"\xff" * 4096, 1, ("no journal in these",)),
        ("check", bytes(4096), 1, ("no journal in these",)),
    ],
)
def test_command_shows_what_is_there_or_says_in_one_line_why_not(
    tmp_path, command, image, status, said
):
    path = tmp_path / "journal.img"
    path.write_bytes(image)
    output = said_by(cli, command, path, status=status)
    for text in said:
        assert text in output
    assert "no journal" not in output or len(output.splitlines()) == 1
