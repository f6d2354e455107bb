"""The process that libFuzzer runs in: instruments the client and never returns.

Started by `python -m host_tests fuzz run`; the arguments are libFuzzer's own.
"""

import sys

from host_tests import library  # noqa: F401 - makes umqtt31 importable

try:
    import atheris
except ImportError:
    sys.exit(2)


def main() -> None:
    """Hand the target over to libFuzzer."""
    assert "umqtt31" not in sys.modules  # else it would stay without instruments
    with atheris.instrument_imports(include=["umqtt31"]):
        from host_tests.fuzz.target import check

    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
