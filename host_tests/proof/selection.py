"""Which tests exercise the library inside this process, where they can be watched.

Left out: those that start MicroPython, and the long campaigns, which run the
simulator in processes of their own and find nothing that these do not reach.
"""

_FOLDERS = ("host_tests/client", "host_tests/journal", "host_tests/sim", "host_tests/tls")
_ELSEWHERE = (
    "client/test_conformance.py",
    "client/test_locked.py",
    "client/test_on_micropython.py",
    "journal/test_on_micropython.py",
    "journal/test_powercut.py",
    "sim/test_campaign.py",
    "sim/test_wrong_clients.py",
)
_SINGLE = (
    "client/test_hostile.py::test_generated_inputs_find_nothing",
    "client/test_hostile.py::test_hostile_inputs_find_nothing_on_micropython",
    "tls/test_errors.py::test_handshake_without_memory_says_how_much_it_takes",
    "tls/test_stream.py::test_messages_pass_both_ways_with_locked_heap",
)


def pytest_arguments() -> list[str]:
    """What to hand to pytest, to be run in the root of the project."""
    ignored = [f"--ignore=host_tests/{path}" for path in _ELSEWHERE]
    return [*_FOLDERS, *ignored, *(f"--deselect=host_tests/{test}" for test in _SINGLE)]
