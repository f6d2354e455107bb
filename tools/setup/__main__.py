"""`python3 -m tools.setup [LAYER]`: all steps, with the Python that the person has."""

import sys

# Before any import that an older Python cannot read, and in words that it can.
if sys.version_info < (3, 11):  # noqa: UP036
    found = ".".join(map(str, sys.version_info[:2]))
    sys.exit(
        f"setup: Python 3.11 or newer is needed, this is {found}; "
        "install one and run: make setup PYTHON=python3.11"
    )

from tools.setup.steps import SetupError, run_all

try:
    run_all(*sys.argv[1:2])
except SetupError as error:
    sys.exit(f"setup: {error}")
except KeyboardInterrupt:
    sys.exit("setup: stopped; run `make setup` again to go on")
