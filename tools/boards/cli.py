"""The commands `python -m tools boards …`: arguments in, progress and tables out.

Exit codes: 0 done, 1 the board, the build or an input said no, 2 wrong use.  The
work is in the modules beside this one, imported when a command needs them.
"""

import contextlib
from pathlib import Path

import click

from . import cli_devices, cli_updates, options
from .errors import Commands
from .places import shown, write_private
from .profile import board_names, load_profile

# Shown in hexadecimal, as data sheets and upstream's files have them.
_HEX = ("offset", "size", "firmware_offset", "uf2_family")


@click.group(cls=Commands)
def cli():
    """Build, flash, provision and watch boards."""


def _warn(text):
    click.echo(f"Warning: {text}", err=True)


def _of_a_node(board):
    # -> the profile of a board that is to run the sensor node.
    from .config import lack_of_memory

    profile = load_profile(board)
    if text := lack_of_memory(profile):
        _warn(text)
    return profile


def _built(profile, number, is_plain):
    # -> {path on the board: bytes} of all files but the device's own.
    from .compile import build_tree, newest_source, tree_files
    from .deploy import numbered

    files = tree_files(build_tree(profile, is_plain=is_plain))
    return numbered(files, number or newest_source(profile))


def _base(profile, firmware, number, is_plain):
    # What all devices with this firmware share.
    from .deploy import with_list
    from .image import make_base

    return make_base(profile, firmware, with_list(_built(profile, number, is_plain)))


@cli.command("list")
def list_boards():
    """Print the boards that have a profile."""
    for name in board_names():
        click.echo(f"{name:20} {load_profile(name).title}")


@cli.command()
@options.board
def show(board):
    """Print one board's facts, and where its MicroPython is published."""
    from .pins import check_pins

    profile = load_profile(board)
    check_pins(profile)
    click.echo(f"journal lasts {profile.journal.life_years():,.0f} years at a message in 10 s")
    for table, values in profile.model_dump(exclude_none=True).items():
        for key, value in values.items() if isinstance(values, dict) else [("", values)]:
            name = f"{table}.{key}" if key else table
            is_hex = name.rpartition(".")[2] in _HEX
            click.echo(f"{name:30} {f'{value:#x}' if is_hex else value}")


@cli.command()
@options.board
@options.plain
def build(board, is_plain):
    """Compile library and firmware to .mpy for the board's architecture."""
    from .compile import build_tree

    profile = load_profile(board)
    with options.progress("compiling", None) as advance:
        tree = build_tree(profile, on_file=advance, is_plain=is_plain)
    total = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file())
    click.echo(f"{shown(tree)}: {total:,} bytes for {profile.arch}")


@cli.command()
@options.board
@options.port
@options.config
@options.number
@click.option("--no-check", is_flag=True, help="Leave out the check on the board.")
@click.option("--no-start", is_flag=True, help="Do not start main.py afterwards.")
@options.plain
def deploy(board, port, config, number, no_check, no_start, is_plain):
    """Copy changed files to the board, then let it check itself."""
    from . import deploy as deployment
    from .access import doubt
    from .config import device_files, read_config
    from .remote import Remote

    profile = _of_a_node(board)
    files = device_files(config, profile) if config else {}
    files = _built(profile, number, is_plain) | files
    with contextlib.nullcontext() if no_start else Remote(port).stopped():
        with options.progress("copying", None) as advance:
            plan = deployment.deploy(port, files, profile, on_file=advance, on_doubt=_warn)
        count = len(plan.changed.keys() & files.keys())
        click.echo(f"{count} of {len(files)} files copied, {len(plan.removed)} removed")
        if config and (text := doubt(read_config(config, profile), config.parent)):
            _warn(text)
        for path in plan.foreign:
            click.echo(f"  kept in /backup: your {path}")
        if not no_check:
            for key, value in deployment.check_itself(port).items():
                click.echo(f"  {key:12} {value}")
    if not no_start:
        click.echo("started; see it with: make monitor PORT=" + port)


@cli.command()
@options.board
@options.firmware
@options.config
@options.number
@click.option("--out", type=click.Path(path_type=Path), help="Default: below build/BOARD.")
@options.plain
def image(board, firmware, config, number, out, is_plain):
    """Make one flashable file: MicroPython, our files, settings, empty journal."""
    from .config import device_files, read_config
    from .places import BUILD

    profile = _of_a_node(board)
    if config is None:
        raise click.UsageError("without settings the image cannot start: add CONFIG=device.toml")
    name = read_config(config, profile)["client_id"]
    files = device_files(config, profile)
    base = _base(profile, firmware, number, is_plain)
    out = out or BUILD / profile.name / (name + base.suffix)
    data = base.image(files)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_private(out, data)
    click.echo(f"{shown(out)}: {len(data):,} bytes for {profile.title}")


@cli.command()
@options.board
@options.firmware
@click.option("--batch", cls=options.Needed, type=options.FILE, help="CSV: id,user,password,…")
@click.option("--config", type=options.FILE, help="device.toml with what all devices share.")
@options.number
@click.option("--out", type=click.Path(path_type=Path), help="Default: build/BOARD/BATCH.")
@options.plain
def provision(board, firmware, batch, config, number, out, is_plain):
    """Make one image per device of a batch, and a manifest with hashes."""
    from . import provision as provisioning
    from .config import files_of
    from .places import BUILD

    profile = _of_a_node(board)
    devices = provisioning.read_batch(batch, profile, config)
    folders = {batch.parent: None} | ({config.parent: None} if config else {})
    files = {one["client_id"]: files_of(one, *folders) for one in devices}
    base = _base(profile, firmware, number, is_plain)
    out = out or BUILD / profile.name / batch.stem
    with options.progress("making", len(devices)) as advance:
        manifest = provisioning.provision(base, files, out, on_device=advance)
    click.echo(
        f"{len(devices)} images and {shown(manifest)}; keep them private: they hold passwords"
    )


@cli.command()
@options.board
@click.option("--port", help="Serial port (ESP32).")
@click.option("--drive", type=click.Path(), help="Mount point of the boot loader (RP2).")
@click.option(
    "--image", type=click.Path(path_type=Path), help="Default: the newest of this board."
)
def flash(board, port, drive, image):
    """Write an image to the board."""
    from . import flash as flashing

    profile = load_profile(board)
    image = image or flashing.newest_image(profile)
    click.echo(f"writing {shown(image)}")
    flashing.flash(profile, image, port, drive, on_text=click.echo)
    click.echo("done; see it start with: make monitor PORT=…")


@cli.command()
@options.board
@click.option("--port", help="Also write it to the ROMFS partition of the board here.")
@options.plain
def romfs(board, port, is_plain):
    """Make a ROMFS image of library and firmware; bytecode runs from it in place."""
    from .compile import build_tree, make_romfs
    from .places import BUILD
    from .remote import Remote

    profile = load_profile(board)
    data = make_romfs(build_tree(profile, is_plain=is_plain))
    out = BUILD / profile.name / "umqtt31.romfs"
    out.write_bytes(data)
    click.echo(f"{shown(out)}: {len(data):,} bytes")
    if port:
        board = Remote(port)
        with board.stopped():
            click.echo(board.run(["romfs", "deploy", str(out)]).strip())


@cli.command()
def package():
    """Write package.json, package-full.json and manifest.py from the library's modules."""
    from .packaging import write_packages

    click.echo(", ".join(write_packages()))


for command in [*vars(cli_devices).values(), *vars(cli_updates).values()]:
    if isinstance(command, click.Command):
        cli.add_command(command)
