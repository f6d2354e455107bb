"""`python -m host_tests GROUP COMMAND …`: simulate, cut power, hunt, measure, check.

Group NAME is the click object `cli` in `host_tests/NAME/cli.py` or `host_tests/NAME.py`.
"""

from pathlib import Path

from tools.__main__ import LazyGroup


class _Group(LazyGroup):
    folder = Path(__file__).parent


main = _Group(
    "host_tests",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="What contributors run beside pytest. GROUP --help says more.",
)


if __name__ == "__main__":
    main(prog_name="python -m host_tests")
