"""The commands `python -m tools boards …`: arguments in, progress and tables out.

Exit codes: 0 done, 1 the board, the build or an input said no, 2 wrong use.  The
work is in the modules beside this one, imported when a command needs them.
"""

from pathlib import Path

import click

from . import options
from .places import shown
from .profile import board_names, load_profile


@click.group()
def cli():
    """Build, flash, provision and watch boards."""


@cli.command("list")
def list_boards():
    """Print the boards that have a profile."""
    for name in board_names():
        click.echo(f"{name:20} {load_profile(name).title}")


@cli.command()
@options.board
def build(board):
    """Compile library and firmware to .mpy for the board's architecture."""
    from .compile import board_sources, build_tree

    profile = load_profile(board)
    with options.progress("compiling", len(board_sources(profile))) as advance:
        tree = build_tree(profile, on_file=advance)
    total = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file())
    click.echo(f"{shown(tree)}: {total:,} bytes for {profile.arch}")


@cli.command()
@options.board
@options.port
@options.config
@click.option("--no-check", is_flag=True, help="Leave out the check on the board.")
@click.option("--no-start", is_flag=True, help="Do not start main.py afterwards.")
def deploy(board, port, config, no_check, no_start):
    """Copy changed files to the board, then let it check itself."""
    from . import deploy as deployment
    from .compile import build_tree, tree_files
    from .config import device_files
    from .remote import Remote

    profile = load_profile(board)
    files = device_files(config, profile) if config else {}
    files = tree_files(build_tree(profile)) | files
    with options.progress("copying", None) as advance:
        plan = deployment.deploy(port, files, on_file=advance)
    click.echo(f"{len(plan.changed)} of {len(files)} files copied, {len(plan.removed)} removed")
    if not no_check:
        for key, value in deployment.check_itself(port).items():
            click.echo(f"  {key:12} {value}")
    if not no_start:
        Remote(port).restart()
        click.echo("started; see it with: make monitor PORT=" + port)


@cli.command()
@click.argument("image", type=click.Path(path_type=Path, dir_okay=False))
def virtual(image):
    """Run a virtual board on the flash image IMAGE, made when missing, until Ctrl-C."""
    from .virtual.run import serve

    profile = load_profile("desk")
    serve(profile, image, profile.memory.heap)
