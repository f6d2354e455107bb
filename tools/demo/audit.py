"""The demo's last act: the fleet pipeline judges what was captured of the node.

It sees the wire only, and knows nothing of what the node and the receiver counted.
"""

from pathlib import Path

from rich.console import Console

# Links were cut on purpose, so packets that stop in the middle are no finding here.
_EXPECTED = {"places where bytes are missing"}


def play(console: Console, captures: Path, out: Path) -> bool:
    """Audit the folder `captures` into `out` and say what was found -> was it nothing?

    Without Java or the fleet's packages there is no audit; that is said, and no fault.
    """
    try:
        from tools.fleet import batch
    except ImportError:
        console.print("\nNot audited: run `make setup LAYER=fleet` first", soft_wrap=True)
        return True
    try:
        result = batch.audit(captures, out, batch.Wish(memory="1g"))
    except batch.BadInput as error:
        console.print(f"\nNot audited: {error}", soft_wrap=True)
        return True
    findings = result.findings.items()
    found = {name: number for name, number in findings if number and name not in _EXPECTED}
    console.print(
        f"\nAudit of {result.rows['packets']} packets with {result.rows['readings']} readings: "
        + (", ".join(f"{number} {name}" for name, number in found.items()) or "nothing found"),
        highlight=False,
        soft_wrap=True,
        style="bold red" if found else None,
    )
    console.print(f"Report, for a browser: {out / 'report.html'}", soft_wrap=True)
    return not found
