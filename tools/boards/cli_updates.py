"""What the fleet's key is for: key, release, rollout, and commands to a device."""

import time
from pathlib import Path

import click

from . import options
from .places import BUILD, shown
from .profile import load_profile

_KEY = click.option("--key", cls=options.Needed, type=options.FILE, help="The fleet's key file.")
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("path", type=_FILE)
def key(path):
    """Make a key for a fleet; its text is each device's setting update_key."""
    from .fleetkey import make_key

    make_key(path)
    click.echo(f"{shown(path)}: keep it private; its text is update_key in each device.toml")


@click.command()
@options.board
@_KEY
@click.option("--base", type=options.FILE, help="Bundle of the release that the boards run.")
@click.option(
    "--number", type=options.ONE, help="Release number, larger than all before; default: time."
)
@click.option("--out", type=_FILE, help="Default: below build/BOARD.")
@options.plain
def release(board, key, base, number, out, is_plain):
    """Build a signed bundle of what changed, for updates over the air."""
    from .compile import build_tree, tree_files
    from .fleetkey import read_key
    from .release import check_base, make_bundle, manifest_of, read_base

    profile = load_profile(board)
    number = number or int(time.time())
    before = None
    if base:
        data = base.read_bytes()
        before = read_base(data, shown(base))
        check_base(data, shown(base), profile.name, number)
    files = tree_files(build_tree(profile, is_plain=is_plain))
    bundle = make_bundle(profile.name, files, read_key(key), number, before)
    out = out or BUILD / profile.name / f"release-{number}.bundle"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(bundle)
    changed = sum(line.startswith("+") for line in manifest_of(bundle))
    click.echo(f"{shown(out)}: release {number}, {changed} files, {len(bundle):,} bytes")


@click.command()
@options.broker
@click.option("--bundle", cls=options.Needed, type=options.FILE, help="Of `boards release`.")
@click.option(
    "--fleet", cls=options.Needed, type=options.FILE, help="As of provision, or one id a line."
)
@_KEY
@options.prefix
@options.count("--at-once", 20, "Devices at a time.")
@options.count("--patience", 900, "Seconds without a word.")
def rollout(broker, bundle, fleet, key, prefix, at_once, patience):
    """Bring a bundle to a list of devices over MQTT; exit status 1 if any did not take it."""
    from . import rollout as rolling
    from .fleetkey import read_key
    from .release import check_key, read_base

    data, secret = bundle.read_bytes(), read_key(key)
    # Checked here, as each device would receive all of it and then refuse it.
    read_base(data, shown(bundle))
    check_key(data, shown(bundle), secret)
    devices = rolling.read_fleet(fleet, prefix)
    rolled = rolling.Rollout(data, devices, secret, at_once, patience)
    rolling.run(broker(), rolled, click.echo)
    failed = sum(device.state == rolling.FAILED for device in devices)
    if unproven := sum(device.unproven for device in devices):
        click.echo(f"{unproven} answers came without a proof by this key, and were ignored")
    click.echo(f"{len(devices) - failed} of {len(devices)} devices run it")
    if failed:
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("device", callback=options.check_topic)
@click.argument("words", nargs=-1, required=True)
@options.broker
@click.option("--key", type=options.FILE, help="The fleet's key file: sign the command.")
@options.prefix
@options.count("--patience", 30, "Seconds to wait.")
def command(device, words, broker, key, prefix, patience):
    """Send a command to DEVICE (with a site: SITE/DEVICE), e.g. `interval 60000`.

    Exit status 1 unless it is done.
    """
    from .commanding import command as give
    from .fleetkey import read_key

    secret = read_key(key) if key else None
    answer = give(broker(), f"{prefix}/{device}", " ".join(words), secret, patience)
    proven = " with a proof by this key" if key else ""
    click.echo(f"{device}: {answer or f'no answer{proven} in {patience} s'}")
    if answer != "done":
        raise click.exceptions.Exit(1)
