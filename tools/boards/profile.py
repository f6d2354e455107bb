"""Board profiles: the schema of `boards/<NAME>/board.toml`, and reading it.

Every board tool works on a `Profile`; none reads a TOML file itself.  What a board shares with
others stands in `boards/chips.toml`; its own file wins.  An error names the file, the key, the
value found and the values allowed.  Sizes and offsets are bytes; the keys are explained in
docs/reference/board-profiles.md.
"""

import difflib
import functools
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from .errors import BoardError
from .places import BOARDS, read_toml, shown

Arch = Literal["armv6m", "armv7emsp", "xtensawin", "rv32imc", "x64"]
Bytes = Annotated[int, Field(ge=0)]
Sector = Annotated[int, Field(gt=0, multiple_of=4096)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Firmware(_Table):
    """The upstream MicroPython image: its file, where it is published, and its own words.

    `machine` is the board's name in `sys.implementation._machine`, before " with ".
    """

    pattern: str
    download: str
    machine: str


class Flash(_Table):
    """The flash chip and how it is written."""

    method: Literal["esptool", "uf2", "none"]
    size: Sector
    firmware_offset: Bytes


class Filesystem(_Table):
    """The littlefs that MicroPython mounts at "/" on this board.

    `offset` and `size` are those of upstream's default; an ESP32's are taken from
    the partition table instead, so there both describe the expected result.
    """

    offset: Bytes
    size: Sector
    block: Literal[4096]
    read_unit: Literal[32]
    program_unit: Literal[32, 256]


class Journal(_Table):
    """Where the journal lies and what its flash stands.

    `partition`: an own data partition; `reserved`: blocks of the filesystem's
    area that littlefs never touches; `file`: a file, through FileBlockDevice.
    `offset` is from the start of the flash (partition) or the filesystem (reserved).
    """

    place: Literal["partition", "reserved", "file"]
    offset: Bytes
    size: Sector
    program_unit: Literal[32, 256]
    erase_unit: Literal[4096]
    cycles: Annotated[int, Field(gt=0)]
    erases_per_message: Annotated[float, Field(gt=0, le=1)]

    def life_years(self, seconds_per_message=10):
        """Years until every block has seen `cycles` erases, wear being even."""
        messages = self.size // self.erase_unit * self.cycles / self.erases_per_message
        return messages * seconds_per_message / (365.25 * 86400)


class Memory(_Table):
    """`heap`: bytes free for programs on a freshly booted board without SPIRAM."""

    heap: Annotated[int, Field(gt=0)]


class Defaults(_Table):
    """Sizes for MQTTClient that suit the board's memory."""

    buffer_size: Annotated[int, Field(ge=128, le=4096)]
    max_inflight: Annotated[int, Field(ge=1, le=64)]
    max_mqueue_len: Annotated[int, Field(ge=1, le=1024)]


class Profile(_Table):
    """One board; `name` is upstream MicroPython's board name: the folder's."""

    name: str
    title: str
    mcu: str
    port: Literal["esp32", "rp2", "unix"]
    arch: Arch
    network: Literal["wifi", "ethernet", "host"]
    image_id: int | None = None
    uf2_family: int | None = None
    boot_id: str | None = None
    firmware: Firmware
    flash: Flash
    filesystem: Filesystem
    journal: Journal
    memory: Memory
    defaults: Defaults

    @model_validator(mode="after")
    def _areas_fit(self):
        if self.filesystem.offset + self.filesystem.size > self.flash.size:
            raise ValueError(
                f"filesystem ends at {self.filesystem.offset + self.filesystem.size:#x}, "
                f"allowed: up to flash.size {self.flash.size:#x}"
            )
        room = self.filesystem.size if self.journal.place == "reserved" else self.flash.size
        if self.journal.place != "file" and self.journal.offset + self.journal.size > room:
            raise ValueError(
                f"journal ends at {self.journal.offset + self.journal.size:#x}, "
                f"allowed: up to {room:#x}"
            )
        if self.journal.offset % self.journal.erase_unit:
            raise ValueError(
                f"journal.offset is {self.journal.offset:#x}, allowed: whole blocks of 0x1000"
            )
        return self

    @property
    def folder(self):
        """The board's folder, where board.py lies too."""
        return BOARDS / self.name

    @property
    def chip(self):
        """The chip's name as MicroPython writes it, without dashes."""
        return self.mcu.upper()


@functools.cache
def shared_facts():
    """boards/chips.toml: {"all": tables, "port": {name: tables}, "chip": {name: tables}}."""
    path = BOARDS / "chips.toml"
    try:
        return read_toml(path)
    except OSError as error:
        raise BoardError(f"{shown(path)}: {error}") from None


def chip_of(machine):
    """The chip in `sys.implementation._machine`, such as "ESP32C3"; "" when there is none.

    "… with ESP32-PICO-D4" is an ESP32: the longest name that fits counts.
    """
    name = machine.rpartition(" with ")[2].replace("-", "").upper()
    fitting = [chip.upper() for chip in shared_facts()["chip"] if name.startswith(chip.upper())]
    return max(fitting, key=len, default="")


def board_names():
    """Names of all boards that have a profile, sorted."""
    return sorted(path.parent.name for path in BOARDS.glob("*/board.toml"))


def load_profile(name):
    """The validated profile of board `name`; BoardError with the nearest name if unknown."""
    if name not in board_names():
        near = difflib.get_close_matches(name.upper(), [n.upper() for n in board_names()], 1, 0.4)
        hint = next((n for n in board_names() if n.upper() in near), None)
        ask = f"did you mean {hint}?" if hint else f"there are: {', '.join(board_names())}"
        raise BoardError(f"no board {name!r}: {ask}")
    profile = read_profile(BOARDS / name / "board.toml")
    if profile.name != name:
        raise BoardError(
            f"{shown(BOARDS / name / 'board.toml')}: name: found {profile.name!r}, "
            f"allowed: the folder's name {name!r}"
        )
    return profile


def read_profile(path):
    """Read one board.toml; BoardError naming file, key, value found and values allowed."""
    try:
        return Profile.model_validate(_with_shared_facts(read_toml(path), path))
    except ValidationError as error:
        lines = [_explain(entry) for entry in error.errors()]
        raise BoardError("; ".join(f"{shown(path)}: {line}" for line in lines)) from None


def _with_shared_facts(own, path):
    chips = shared_facts()["chip"]
    mcu = own.get("mcu")
    if mcu not in chips:
        found = "nothing" if mcu is None else repr(mcu)
        raise BoardError(f"{shown(path)}: mcu: found {found}, allowed: {', '.join(chips)}")
    port = shared_facts()["port"][chips[mcu]["port"]]
    name = own.get("name", path.parent.name)
    page = {"pattern": f"{name}-*", "download": f"https://micropython.org/download/{name}/"}
    tables = shared_facts()["all"], port, chips[mcu], own
    return _with_partitions(functools.reduce(_merged, tables, {"name": name, "firmware": page}))


def _with_partitions(found):
    # "journal" is the last partition, and "vfs" takes what is between.
    filesystem, journal = found["filesystem"], found["journal"]
    if journal.get("place") == "partition":
        try:
            journal.setdefault("offset", found["flash"]["size"] - journal["size"])
            filesystem.setdefault("size", journal["offset"] - filesystem["offset"])
        except (KeyError, TypeError):
            pass  # the schema says what is missing or wrong
    return found


def _merged(below, above):
    # `above` wins, table by table; neither is changed.
    result = dict(below)
    for key, value in above.items():
        is_table = isinstance(value, dict) and isinstance(below.get(key), dict)
        result[key] = _merged(below[key], value) if is_table else value
    return {key: dict(one) if isinstance(one, dict) else one for key, one in result.items()}


def _explain(entry):
    key = ".".join(str(part) for part in entry["loc"])
    if entry["type"] == "missing":
        return f"{key}: found nothing, allowed: {_allowed_for(entry['loc'])}"
    if entry["type"] == "extra_forbidden":
        return f"{key}: unknown key, allowed: {', '.join(_table_at(entry['loc'][:-1]))}"
    if entry["type"] == "value_error":
        return str(entry["ctx"]["error"])
    expected = entry.get("ctx", {}).get("expected")
    allowed = expected or entry["msg"].removeprefix("Input should be ")
    return f"{key}: found {entry['input']!r}, allowed: {allowed}"


def _table_at(loc):
    table: Any = Profile
    for part in loc:
        table = table.model_fields[part].annotation
    return table.model_fields


def _allowed_for(loc):
    annotation = _table_at(loc[:-1])[loc[-1]].annotation
    if get_origin(annotation) is Literal:
        return " or ".join(repr(value) for value in get_args(annotation))
    if issubclass(annotation, _Table):
        return f"a table with {', '.join(annotation.model_fields)}"
    return {"str": "a text", "int": "a whole number", "float": "a number"}[annotation.__name__]
