"""Updates over the air under CPython: what is refused, resumed, staged and taken back.

A folder is the board's filesystem; each start runs update.finish() as boot.py does.
Real littlefs that loses its power at every operation: test_update_cuts.py.
"""

import ast
import hashlib
import hmac
import io
import os
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

import update
from host_tests.standin.clock import Clock
from ota import Updates
from tools.boards import release
from tools.boards.errors import BoardError
from tools.boards.fleetkey import ANSWER, proof
from tools.boards.places import FIRMWARE
from tools.boards.release import make_bundle

KEY = bytes(range(32))
NONCE = b"8 bytes!"
OLD = {"a.mpy": b"old a", "lib/b.mpy": b"old b" * 300, "gone.mpy": b"gone", "boot.py": b"boot"}
NEW = {
    "a.mpy": b"new a",
    "lib/b.mpy": b"new b" * 400,
    "boot.py": b"boot",
    "gone/in/c.mpy": b"c",
    "lib/d.mpy": b"d",
}
BASE = {path: hashlib.sha256(data).hexdigest() for path, data in OLD.items()}


NOT_OVER = ["refused: the last update is not over"]


def bundle_of(files=NEW, key=KEY, release=5, base=BASE, board="desk"):
    return make_bundle(board, files, key, release, base)


@pytest.fixture
def board(tmp_path, monkeypatch):
    """The board's filesystem with the old files, as the current folder."""
    begin(tmp_path, monkeypatch)
    return tmp_path


def begin(folder, monkeypatch):
    (folder / "lib").mkdir(parents=True)
    monkeypatch.chdir(folder)
    for path, data in OLD.items():
        Path(path).write_bytes(data)


class Node:
    """What node.py does with an Updates object: its outbox, and a chunk's size."""

    def __init__(self, key=KEY, most_bytes=300):
        self.outbox = []
        self.key = key
        self.clock = Clock()
        self.updates = Updates(
            key.hex(), "desk", most_bytes, lambda: None, lambda *words: None, self.clock
        )
        self.updates.attach(b"t", self.outbox)

    def said(self, nonce=NONCE):
        """The answers, each of which is proven, without their proofs."""
        found = []
        for topic, answer in self.outbox:
            said, _, shown = answer.rpartition(b" ")
            assert shown == proof(self.key, ANSWER, nonce.hex().encode(), topic, said)
            found.append(said.decode().partition(" ")[2])
        self.outbox.clear()
        return found

    def offer(self, bundle, nonce=NONCE):
        """-> what it says to that, as chunk()."""
        self.updates.take(offer(name_of(bundle), len(bundle), nonce))
        return self.said(nonce)

    def chunk(self, bundle, offset, size=300, nonce=NONCE):
        data = bundle[offset : offset + size]
        self.updates.take(b"C" + name_of(bundle) + offset.to_bytes(4, "big") + data)
        return self.said(nonce)

    def bring(self, bundle):
        """The whole of it."""
        self.offer(bundle)
        for offset in range(0, len(bundle), 300):
            self.chunk(bundle, offset)
        assert self.updates.is_complete

    def receive(self, bundle):
        """The whole of it -> whether a reset is wanted."""
        self.bring(bundle)
        return self.updates.stage()


def on_trial():
    """-> the node that runs a new bundle for the first time."""
    Node().receive(bundle_of())
    update.finish()
    return Node()


def offer(name, size, nonce=NONCE):
    return b"O" + name + size.to_bytes(4, "big") + nonce


def name_of(bundle):
    return hashlib.sha256(bundle).digest()[:8]


def files(*but):
    here = Path.cwd()
    found = {one.relative_to(here).as_posix(): one for one in here.rglob("*") if one.is_file()}
    return {path: one.read_bytes() for path, one in found.items() if path not in but}


def is_old(found):
    # MicroPython would import an empty folder in place of gone.mpy.
    return all(found.get(path) == data for path, data in OLD.items()) and not Path("gone").exists()


def is_new(found):
    return all(found.get(path) == data for path, data in NEW.items()) and "gone.mpy" not in found


def test_bundle_that_is_right_is_staged_run_and_confirmed(board):
    node = Node()
    assert node.receive(bundle_of())
    assert node.said() == ["staged"]
    assert is_old(files())
    assert update.finish()
    assert is_new(files())
    node = Node()  # the new firmware, at the broker
    node.updates.told_at_start()
    assert node.said() == ["running"]
    left = files(*NEW, "deployed.txt", "release.txt", "update_id")
    assert left == {}
    update.finish()
    node.updates.told_at_start()
    assert node.said() == []
    assert node.offer(bundle_of()) == ["running"]


def test_bundle_is_resumed_where_it_stopped_and_repetitions_do_no_harm(board):
    node, bundle = Node(), bundle_of()
    assert node.offer(bundle) == ["have 0 of 300"]
    for offset in (0, 600, 0):  # the one before the second is lost
        assert node.chunk(bundle, offset) == ["have 300 of 300"]
    node = Node()  # a reset
    assert node.chunk(bundle, 300) == []  # it does not know of it any more
    assert node.receive(bundle)


def test_each_offer_is_answered_with_a_proof_over_its_own_nonce(board):
    """A rollout that was started again believes what is said to itself, and nothing older."""
    bundle, first, second = bundle_of(), b"rollout1", b"rollout2"
    node = Node()
    assert node.offer(bundle, first) == ["have 0 of 300"]
    assert node.offer(bundle, second) == ["have 0 of 300"]
    assert node.chunk(bundle, 0, nonce=second) == ["have 300 of 300"]
    node.receive(bundle)
    node.said()
    assert node.offer(bundle, first) == ["staged"]
    update.finish()
    node = Node()
    assert node.offer(bundle, first) == ["staged"]
    node.updates.told_at_start()
    assert node.said() == ["running"]  # to the rollout that brought it
    assert node.offer(bundle, second) == ["running"]


def test_answer_with_a_long_reason_fits_into_the_smallest_buffer(board):
    """One that did not would have kept all others in the outbox."""
    node = Node(most_bytes=80)  # no names leave less in the smallest buffer_size they allow
    path = "lib/" + "long/" * 30 + "name.mpy"
    manifest = b"board desk\nrelease 5\n= 00 " + path.encode()
    bundle = signed(manifest)
    node.offer(bundle)
    for offset in range(0, len(bundle), 80):
        node.chunk(bundle, offset, 80)
    node.updates.stage()
    ((_, answer),) = node.outbox
    assert len(answer) == 80 + 13 - len("/answer")
    assert node.said() == ["refused: made for other files: lib/l"]


def test_reception_is_under_way_from_the_offer_to_its_end(board):
    node = Node()
    seen = [node.updates.is_receiving]
    for bundle in (bundle_of(key=b"another key of 32 bytes, or less"), bundle_of()):
        node.offer(bundle)
        seen.append(node.updates.is_receiving)
        node.receive(bundle)
        seen.append(node.updates.is_receiving)
    assert seen == [False, True, False, True, False]


def test_offer_of_another_bundle_waits_until_the_one_under_way_has_gone_quiet(board):
    """Two rollouts to one device made it forget, in turn, what the other one had sent."""
    first, second = bundle_of(), bundle_of(release=6)
    node = Node()
    node.offer(first)
    node.offer(second)  # nothing of the first has come yet
    node.chunk(second, 0)
    node.clock.now_ms += 29_000
    assert node.offer(first) == ["busy"]
    assert node.chunk(second, 300) == ["have 600 of 300"]
    node.clock.now_ms += 29_000
    assert node.offer(first) == ["busy"]
    assert node.offer(second) == ["have 600 of 300"]
    for quiet_ms in (31_000, 7 * 86_400_000):
        node.clock.now_ms += quiet_ms
        first, second = second, first
        assert node.offer(second) == ["have 0 of 300"]
        assert node.chunk(second, 0) == ["have 300 of 300"]


def test_bundle_without_a_base_moves_only_what_is_different(board):
    """A Pico W has no room for all files three times."""
    node, new = Node(), NEW | {"a.mpy": OLD["a.mpy"]}
    same = Path("a.mpy").stat().st_ino
    assert node.receive(bundle_of(new, base={path: BASE[path] for path in ("boot.py",)}))
    paths = [line.partition(" ")[2] for line in Path(update.READY).read_text().split("\n")]
    assert set(paths) == {*(NEW.keys() - {"a.mpy", "boot.py"}), "release.txt", "deployed.txt"}
    assert update.finish()
    assert all(Path(path).read_bytes() == data for path, data in new.items())
    assert Path("a.mpy").stat().st_ino == same
    update.go_back()
    update.finish()
    assert is_old(files())


def staged():
    """-> the node that has the new bundle, and waits for its reset."""
    node = Node()
    assert node.receive(bundle_of())
    return node


def going_back():
    """-> the node that has decided to go back, and waits for its reset."""
    node = on_trial()
    assert node.updates.takes_back()
    return node


@pytest.mark.parametrize(
    ("begin", "reaches_broker", "end"),
    [
        # The rollout asks again when a slow flash keeps a device busy; it was refused for want
        # of room, which the staged files had taken.
        (staged, False, is_new),
        # It says goodbye on the same connection or a new one.  The staged files were removed
        # then; on littlefs their list goes last, so that a cut left a mixture.
        (staged, True, is_new),
        # Confirmed then, the old files were removed one by one, and a cut moved some back.
        (going_back, True, is_old),
    ],
    ids=["before the reset", "while it drains", "going back"],
)
def test_offer_when_an_update_is_decided_changes_nothing(board, begin, reaches_broker, end):
    node, bundle = begin(), bundle_of()
    before = files()
    if reaches_broker:
        node.updates.told_at_start()
    node.said()
    assert node.offer(bundle) == ["staged"]
    assert node.chunk(bundle, 0) == []
    assert node.offer(bundle_of(release=6)) == NOT_OVER
    assert not node.updates.is_complete
    assert files() == before
    assert update.finish()
    assert end(files())


def test_update_whose_confirmation_was_cut_and_then_fails_is_not_said_to_run(board, monkeypatch):
    """A rollout of it got the answer "running" from then on."""
    bundle = bundle_of()
    Node().receive(bundle)
    update.finish()
    with monkeypatch.context() as patch:
        cut_at(patch, 3)
        with pytest.raises(PowerCut):
            Node().updates.told_at_start()
    assert Path(update.RUNNING).read_text() == f"{name_of(bundle).hex()} {NONCE.hex()}"
    for _ in range(4):
        update.finish()
    assert is_old(files())
    node = Node()
    node.updates.told_at_start()
    assert node.offer(bundle) == ["rolled back", "have 0 of 300"]


@pytest.mark.parametrize("count", range(1, 7))
def test_confirmation_that_the_flash_refuses_once_succeeds_when_repeated(
    board, monkeypatch, count
):
    node = on_trial()
    with monkeypatch.context() as patch:
        cut_at(patch, count, OSError(5, "EIO"))
        try:
            node.updates.told_at_start()
        except OSError:
            assert update.is_on_trial()  # else takes_back() would mix old files and new
    if node.updates.is_on_trial:
        node.updates.told_at_start()
    assert node.said() == ["running"]
    assert not node.updates.takes_back()
    update.finish()
    assert is_new(files())
    assert not Path("previous").exists()


def test_retained_offer_is_ignored(board):
    """It came with every connection, and forgot the bundle that was on its way."""
    old, bundle = bundle_of(release=1), bundle_of()
    node = Node()
    node.offer(bundle)
    node.chunk(bundle, 0)
    node.updates.take(offer(name_of(old), len(old)), True)
    assert node.said() == []
    assert node.chunk(bundle, 300) == ["have 600 of 300"]


def test_offers_that_the_broker_kept_are_answered_once(board):
    """A rollout asks every 10 s; a node that slept for hours got a thousand answers to hold."""
    node = Node()
    for _ in range(1000):
        for bundle in (bundle_of(), bundle_of(release=6)):
            node.updates.take(offer(name_of(bundle), len(bundle)))
    assert sorted(node.said()) == ["have 0 of 300"] * 2


def test_flood_of_offers_fills_no_memory_and_the_reception_goes_on(board):
    """Answers that wait were as many as somebody liked; the node was deaf for want of memory."""
    node, bundle = Node(), bundle_of()
    for number in range(200):
        node.updates.take(offer(number.to_bytes(8, "big"), 1000))
    assert len(node.outbox) == 64
    node.updates.take(b"C" + name_of(bundle) + bytes(4) + bundle[:300])
    assert len(node.outbox) == 64
    node.outbox.clear()
    assert node.receive(bundle)


def test_reception_that_is_longer_than_its_bundle_begins_anew(board):
    """Somebody offered it with another size; no rollout of it came to an end any more."""
    node, bundle = Node(), bundle_of()
    node.updates.take(offer(name_of(bundle), len(bundle) + 300))
    for offset in range(0, len(bundle) + 300, 300):
        node.updates.take(b"C" + name_of(bundle) + offset.to_bytes(4, "big") + bytes(300))
    node.said()
    assert node.receive(bundle)


@pytest.mark.parametrize("size", [0, 1, 31])
def test_bundle_shorter_than_its_signature_is_refused(board, size):
    """Compared with as much of the signature as there was, none at all was right."""
    node = Node()
    node.updates.take(offer(bytes(8), size))
    if size:
        node.updates.take(b"C" + bytes(12) + bytes(size))
    assert node.updates.is_complete
    node.said()
    os.makedirs("incoming", exist_ok=True)
    Path("incoming", bytes(8).hex()).write_bytes(bytes(size))
    assert not node.updates.stage()
    assert node.said() == ["refused: too short"]


def test_refused_offer_leaves_nothing_to_stage(board, monkeypatch):
    """An offer of no bytes was complete; stage() met the next one without an id."""
    monkeypatch.setattr(os, "statvfs", lambda path: (4096, 4096, 512, 200, 200))
    node = Node()
    node.updates.take(offer(bytes(8), 0))
    assert node.updates.is_complete
    node.updates.take(offer(b"too much", 0xFFFF_FFFF))
    assert node.said()[-1] == "refused: no room for 4294967295 bytes"
    assert not node.updates.is_complete


def test_offer_of_another_bundle_forgets_the_one_before(board):
    first, second = bundle_of(), bundle_of(release=6)
    os.mkdir("staged")
    Path("staged/0").write_bytes(b"of a staging that the power ended")
    node = Node()
    node.offer(first)
    assert not os.path.exists("staged")
    node.chunk(first, 0)
    node.clock.now_ms += 30_000
    node.offer(second)
    assert len(os.listdir("incoming")) == 0 or os.listdir("incoming") == [name_of(second).hex()]
    assert node.receive(second)


def flipped(bundle, at):
    return bundle[:at] + bytes([bundle[at] ^ 1]) + bundle[at + 1 :]


@pytest.mark.parametrize(
    ("bundle", "why"),
    [
        (bundle_of(key=b"another key of 32 bytes, or less"), "wrong signature"),
        (flipped(bundle_of(), 40), "wrong signature"),
        (flipped(bundle_of(), len(bundle_of()) - 40), "wrong signature"),
        (flipped(bundle_of(), len(bundle_of()) - 1), "wrong signature"),
        (bundle_of(board="RPI_PICO_W"), "made for RPI_PICO_W"),
        (bundle_of(release=4), "release 4 is not newer than 4"),
        (bundle_of(NEW | {"a.mpy": b"old a"}, base=BASE | {"a.mpy": "0" * 64}), ""),
        (
            bundle_of(base=BASE | {"lib/b.mpy": hashlib.sha256(NEW["lib/b.mpy"]).hexdigest()}),
            "made for other files: lib/b.mpy",
        ),
    ],
)
def test_bundle_that_is_not_right_changes_nothing_and_says_why(board, bundle, why):
    Path("release.txt").write_text("4\n")
    node = Node()
    is_taken = node.receive(bundle)
    assert is_taken == (not why)
    if why:
        assert node.said() == [f"refused: {why}"]
        assert files() == OLD | {"release.txt": b"4\n"}
        assert update.finish() is False


def signed(manifest, bodies=b"", length=None):
    """A bundle of the fleet's own key, by a tool that writes it wrong."""
    length = len(manifest) if length is None else length
    body = b"u31b\x01" + length.to_bytes(4, "big") + manifest + bodies
    return body + hmac.new(KEY, body, hashlib.sha256).digest()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("five\n+ 1 a.mpy", "manifest: invalid literal"),
        ("5\n+ one a.mpy", "manifest: invalid literal"),
        ("5\n+ 1 \xff.mpy", "manifest: "),
        pytest.param("5\n+ 1 " + "a" * 600, "manifest: a line is too long", id="long line"),
        ("5\n+ 9 gone/in/a.mpy", "damaged before it was signed"),
        ("5\n+ 99 a.mpy", "too short"),
        ("5\n+ 0 a.mpy", "damaged before it was signed"),
        *((f"5\n{line}", f"no path: {line}") for line in (
            "+ 1 a/../boot.py", "+ 1 /boot.py", "+ 1 ./boot.py", "+ 1 ", "+ 1", "- 0 "
        )),
    ],
)  # fmt: skip
@pytest.mark.parametrize("length", [None, 1 << 31])
def test_bundle_whose_manifest_lies_changes_nothing_and_says_why(board, line, why, length):
    """It was raised on, and reset the board with each offer."""
    node = Node()
    assert not node.receive(signed(b"board desk\nrelease " + line.encode("latin"), b"a", length))
    (said,) = node.said()
    assert said.startswith(f"refused: {why if length is None else 'manifest: '}")
    assert files() == OLD
    assert is_old(files())
    assert not update.finish()


def test_device_without_memory_for_a_bundle_says_so(board, monkeypatch):
    """It blamed the manifest."""
    node = Node()
    monkeypatch.setattr("ota._stage", Mock(side_effect=MemoryError("no room")))
    assert not node.receive(bundle_of())
    assert node.said() == ["refused: heap: no room"]
    assert files() == OLD


class Narrow(io.BufferedReader):
    def read(self, size=-1):
        assert 0 <= size <= 128
        return super().read(size)

    def readline(self, size=-1):
        assert 0 <= size <= 256  # MicroPython allocates as much
        return super().readline(size)


def test_bundle_is_staged_in_small_pieces_however_long_its_manifest(board, monkeypatch):
    """A heap in pieces had no 4 KB for it: the device refused a release of 50 files."""
    same = f"= {BASE['a.mpy']} a.mpy\n" * 50
    node, bundle = Node(), signed(f"board desk\nrelease 5\n{same}+ 1 a.mpy".encode(), b"A")
    node.bring(bundle)
    real = open
    monkeypatch.setattr(
        "builtins.open",
        lambda path, mode="r": Narrow(io.FileIO(path)) if mode == "rb" else real(path, mode),
    )
    assert node.updates.stage(), node.said()
    assert update.finish()
    assert Path("a.mpy").read_bytes() == b"A"


# What boot.py and main.py run before, and so without, any guard.
NEEDED = sorted(
    {
        alias.name
        for node in ast.walk(ast.parse((FIRMWARE / "update.py").read_text()))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
)
SHADOWS = [text % name for name in NEEDED for text in ("%s.py", "%s/__init__.py", "lib/%s.mpy")]


def test_boot_and_main_import_update_alone():
    """What they import, an update must not bring: ota.py looks for it in update.py only."""
    for name in ("boot.py", "main.py"):
        body = ast.parse((FIRMWARE / name).read_text()).body
        imports = [node for node in body if isinstance(node, (ast.Import, ast.ImportFrom))]
        assert [ast.unparse(node) for node in imports] == ["import update"]
    assert {"machine", "micropython", "os", "sys", "time"} == set(NEEDED)


@pytest.mark.parametrize(
    "path", ["boot.py", "main.mpy", "update.mpy", "update/__init__.py", "settings.json", *SHADOWS]
)
def test_bundle_that_would_change_how_boards_start_is_refused(board, monkeypatch, path):
    """With `os.py` or `update/__init__.py` neither file nor the way back came in again."""
    monkeypatch.setattr(update, "machine", ast, raising=False)  # a module, as on a board
    monkeypatch.setattr(release, "KEPT", ())  # a tool that does not mind
    monkeypatch.setattr(release, "_shadows", lambda path: False)
    node = Node()
    assert not node.receive(bundle_of(NEW | {path: b"another"}))
    assert node.said() == [f"refused: {path} changes by cable only"]
    assert files() == OLD


@pytest.mark.parametrize("path", ["update/__init__.py", "main.mpy", *SHADOWS])
def test_release_with_a_file_that_boards_would_refuse_is_told(path):
    with pytest.raises(BoardError, match="in place of MicroPython's: rename it"):
        bundle_of(NEW | {path: b"another"})


def test_update_that_nobody_confirms_is_taken_back_after_three_starts(board):
    on_trial()
    for _ in range(3):
        update.finish()
        assert is_new(files())
    update.finish()
    assert is_old(files())
    node = Node()
    node.updates.told_at_start()
    assert node.said() == ["rolled back"]
    assert files(*OLD) == {}


def test_update_that_does_not_reach_the_broker_is_taken_back_once_when_told(board):
    assert not Node().updates.takes_back()
    assert not going_back().updates.takes_back()
    update.finish()
    assert is_old(files())


def test_offer_while_the_last_update_is_on_trial_is_refused(board):
    node = on_trial()
    assert node.offer(bundle_of(release=9)) == NOT_OVER
    assert node.offer(bundle_of()) == ["staged"]  # asked again meanwhile
    node.updates.told_at_start()
    assert node.said() == ["running"]


def full_at(monkeypatch, *paths):
    """The flash has no room for these files; renaming and removing works."""
    real = open

    def opened(path, mode="r", *args, **options):
        if mode[0] in "wa" and path in paths:
            raise OSError(28, "ENOSPC")
        return real(path, mode, *args, **options)

    monkeypatch.setattr("builtins.open", opened)


def test_update_that_fills_the_flash_is_taken_back_at_the_next_start(board, monkeypatch):
    """Its start could not be counted: boot.py failed, so main.py did not run, for ever."""
    on_trial()
    assert is_new(files())
    full_at(monkeypatch, "previous/trial.new", "rolled_back", "staged/written")
    update.finish()
    assert is_old(files())
    assert not update.is_on_trial()


def test_update_that_leaves_no_room_for_its_moves_is_refused(board, monkeypatch):
    """Folders are made when it is decided: without room it would end half moved."""
    node = Node()
    node.bring(bundle_of())
    monkeypatch.setattr(os, "statvfs", lambda path: (4096, 4096, 512, 7, 7))
    assert not node.updates.stage()
    assert node.said() == ["refused: no room to move its files"]
    assert files() == OLD


def test_boot_py_goes_on_to_main_py_whatever_the_flash_does(board, monkeypatch):
    """On a board main.py does not run when boot.py has failed, and nobody resets it."""
    shown = []
    monkeypatch.setattr(sys, "print_exception", shown.append, raising=False)
    monkeypatch.setitem(sys.modules, "micropython", SimpleNamespace())
    Node().receive(bundle_of())
    with monkeypatch.context() as patch:
        full_at(patch, "previous/trial")
        runpy.run_path(str(FIRMWARE / "boot.py"))
    assert [str(error) for error in shown] == ["[Errno 28] ENOSPC"]
    runpy.run_path(str(FIRMWARE / "boot.py"))
    assert is_new(files())
    assert update.is_on_trial()


class PowerCut(BaseException):
    pass


OPERATIONS = ("rename", "remove", "mkdir", "rmdir")


def cut_at(monkeypatch, count, error=PowerCut):
    """The power goes at the `count`-th change of the filesystem from now on, or `error`."""
    left = [count]

    def counted(function):
        def call(*args, **options):
            left[0] -= 1
            if left[0] == 0:
                raise error
            return function(*args, **options)

        return call

    for name in OPERATIONS:
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    real = open

    def opened(path, mode="r", *args, **options):
        return (counted(real) if mode[0] in "wa" else real)(path, mode, *args, **options)

    monkeypatch.setattr("builtins.open", opened)


def test_bundle_is_refused_wherever_the_flash_fails_while_it_is_staged(tmp_path, monkeypatch):
    """Where the move failed that decides, the board reset, and did so with every offer."""
    for count in range(1, 99):
        begin(tmp_path / str(count), monkeypatch)
        node = Node()
        node.bring(bundle_of())
        with monkeypatch.context() as patch:
            cut_at(patch, count, OSError(5, "EIO"))
            is_staged = node.updates.stage()
        if is_staged:
            break
        assert node.said() == ["refused: flash: [Errno 5] EIO"]
        assert files() == OLD
    assert count > 10


@pytest.mark.parametrize("way", ["forward", "back"])
def test_update_cut_anywhere_leaves_all_old_or_all_new_and_goes_on(tmp_path, monkeypatch, way):
    """Each change of a file or folder once: staging, moving, trial, and the way back."""
    seen = []
    for count in range(1, 400):
        begin(tmp_path / str(count), monkeypatch)
        with monkeypatch.context() as patch:
            cut_at(patch, count)
            try:
                Node().receive(bundle_of())
                for _ in range(5 if way == "back" else 1):
                    update.finish()
                if way == "forward":
                    Node().updates.told_at_start()
                is_cut = False
            except PowerCut:
                is_cut = True
        update.finish()
        found = files()
        assert is_old(found) != is_new(found), f"{count}: {sorted(found)}"
        seen.append(is_new(found))
        # Whatever happened: the next bundle is taken as ever.
        node = Node()
        node.updates.told_at_start()
        assert node.receive(bundle_of(release=9, base=None)), node.said()
        if not is_cut:
            break
    assert not is_cut
    assert len(seen) > 30
    assert set(seen) == {False, True}, "cuts on both sides of the change: all old, and all new"
