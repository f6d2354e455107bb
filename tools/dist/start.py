"""Where the command `umqtt31` begins; `umqtt31_host/__init__.py` of the wheel.

Beside it lies `project/`, the tools with what they read: boards, firmware, library.
"""

import sys
from pathlib import Path

_PROJECT = Path(__file__).parent / "project"


def main() -> None:
    """Run the command line, its modules coming from `project/`."""
    sys.path.insert(0, str(_PROJECT))
    from tools.command import main as run

    run(prog_name="umqtt31")
