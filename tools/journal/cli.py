"""Command line of the journal reader."""

from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from tools import packets
from tools.terminal import printable

from .layout import Log, NotAJournal, Record, read_log

_IMAGE = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.group()
def cli() -> None:
    """Show or check a journal image that was read back from a board."""


@cli.command()
@_IMAGE
def dump(file: Path) -> None:
    """Show every record of the journal in FILE, and what it adds up to."""
    log = _read(file)
    console = Console(markup=False)  # a topic may have brackets
    console.print(_about(log), soft_wrap=True)
    table = Table("address", "page", "bytes", "records")
    for group in log.groups:
        records = "\n".join(map(_shown, group.records)) or "-"
        table.add_row(
            f"0x{group.address:06x}",
            str(group.page),
            str(group.length),
            "title" if group.title else records,
        )
    console.print(table)
    console.print(_summary(log), soft_wrap=True)
    for record in log.messages():
        console.print("  " + _shown(record), highlight=False, soft_wrap=True)


@cli.command()
@_IMAGE
def check(file: Path) -> None:
    """Say whether all of the journal in FILE can be read; exit 1 if not."""
    log = _read(file)
    click.echo(_about(log))
    click.echo(_summary(log))
    problems = [f"page at 0x{at:06x} cannot be read" for at in log.unreadable]
    strange = [record.number for record in log.messages() if _publish(record.packet) is None]
    problems += [f"message {number} is no PUBLISH packet" for number in strange]
    if problems:
        hint = "; a power cut while it was written leaves one page like that"
        raise click.ClickException("\n".join(problems) + (hint if log.unreadable else ""))


def _read(file: Path) -> Log:
    try:
        return read_log(file.read_bytes())
    except NotAJournal as error:
        raise click.ClickException(f"{file}: {error}") from None


def _about(log: Log) -> str:
    layout = log.layout
    return (
        f"journal of {layout.client_id.decode(errors='replace')!r}: {layout.blocks} blocks"
        f" of {layout.block_pages} pages of {layout.page_bytes} bytes,"
        f" cells of {layout.cell_bytes}; log in {log.newest - log.oldest + 1} blocks"
    )


def _summary(log: Log) -> str:
    return (
        f"{len(log.messages())} messages, received ids {_ids(log.held) or 'none'},"
        f" last packet id {log.last_id}, level {log.level}{', clean session' * log.is_clean},"
        f" {len(log.unreadable)} pages unreadable"
    )


def _ids(held: set[int]) -> str:
    # "3, 7-12"
    shown: list[list[int]] = []
    for packet_id in sorted(held):
        if shown and shown[-1][1] == packet_id - 1:
            shown[-1][1] = packet_id
        else:
            shown.append([packet_id, packet_id])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in shown)


def _shown(record: Record) -> str:
    text = f"{record.kind} {record.number}"
    if record.kind != "message":
        return text
    flags = ", PUBREC came" * record.has_pubrec + ", maybe sent" * record.maybe_sent
    topic, payload = _publish(record.packet) or ("?", record.packet)
    return (
        f"{text}: packet id {record.packet_id}, QoS {record.qos}{flags},"
        f" topic {topic}, {len(payload)} bytes {payload[:24].hex()}"
    )


def _publish(packet: bytes) -> tuple[str, bytes] | None:
    """Topic and payload of a PUBLISH packet, None if it is none (MQTT 3.1 section 3.3)."""
    if not packet or packet[0] >> 4 != 3:
        return None
    try:
        topic, payload = packets.read_publish(packet)
    except (IndexError, ValueError):
        return None
    return printable(topic.decode(errors="replace")), payload
