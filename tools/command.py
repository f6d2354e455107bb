"""The command `umqtt31` of the installed package: what `make` does, by the same words.

`umqtt31 deploy BOARD=RPI_PICO_W PORT=/dev/ttyACM0` is `make deploy …`; `--board NAME`
does the same as `BOARD=NAME`.
"""

import re
import shlex

import click

from tools.__main__ import LazyGroup
from tools.boards.errors import Commands

COMMANDS = {
    "advise": "which order receivers can count on: BOARD= [CONFIG=]",
    "audit": "judge recorded traffic of a fleet: CAPTURES=folder OUT=folder",
    "boards": "the boards that have a profile",
    "build": "compile library and firmware: BOARD= [DEBUG=1]",
    "clock": "tell boards without NTP the time, over their broker: SERVER= [TOPIC=]",
    "deploy": "copy changed files to a board, check it: BOARD= PORT= [CONFIG=]",
    "flash": "write an image to a board: BOARD= PORT= [IMAGE=]",
    "image": "one flashable file: BOARD= FIRMWARE= CONFIG=",
    "journal": "read a board's journal back and show it: PORT=",
    "monitor": "show what a board prints: PORT=",
    "provision": "images for a batch: BOARD= FIRMWARE= BATCH=",
    "release": "signed bundle for updates: BOARD= KEY=",
    "rollout": "bring a bundle to devices: BUNDLE= FLEET= KEY= SERVER=",
    "romfs": "library and firmware as a ROMFS image: BOARD= [PORT=]",
    "watch": "readings and health of a fleet as they come: SERVER=",
}
_ELSEWHERE = {"audit": ("fleet", "audit"), "boards": ("boards", "list")}
# Words of make that become no option: an argument, and more words of the command.
_ARGUMENT = "CAPTURES"
_MORE = "ARGS"
_WORD = re.compile(r"([A-Z]+)=(.*)", re.DOTALL)


def place_of(name: str) -> tuple[str, str]:
    """The group and the name of a command in `python -m tools`."""
    return _ELSEWHERE.get(name, ("boards", name))


def options_of(words: list[str]) -> list[str]:
    """The words of make as those of click: BOARD=x is --board x."""
    found: list[str] = []
    for word in words:
        named = _WORD.fullmatch(word)
        if named is None:
            found.append(word)
        elif named[1] == _ARGUMENT:
            found.append(named[2])
        elif named[1] == _MORE:
            found += shlex.split(named[2])
        elif named[2]:
            found += [f"--{named[1].lower()}", named[2]]
    return found


class _Commands(Commands):
    """Imports the group of a command when that is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        group, name = place_of(cmd_name)
        found = LazyGroup().get_command(ctx, group)
        assert isinstance(found, click.Group)
        return found.get_command(ctx, name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command, options_of(rest)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items()])


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="umqtt31")
def main() -> None:
    """Build, flash, watch and audit devices that run umqtt31.

    Where a text says `make NAME`, `umqtt31 NAME` does the same, BOARD=… and all.
    """
