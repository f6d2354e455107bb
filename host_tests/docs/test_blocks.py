"""Every block of code in README and docs/ is run, or checked in a stated way.

A block's label says which: `python` is a program, run under CPython and MicroPython;
`sh` and `console` are commands, checked as the program itself would, and most are run
(RUN, CHECKED); settings, tables and outputs have a check below.  A block that a test
elsewhere runs is named in ELSEWHERE.
"""

import re
import shutil
import tomllib

import pytest
from click.testing import CliRunner

from firmware import settings
from host_tests.brokers import Mosquitto
from host_tests.docs import blocks, commands
from host_tests.patience import SECONDS
from host_tests.running import CPYTHON
from tools.__main__ import main
from tools.boards.profile import load_profile
from tools.boards.provision import read_batch
from tools.project import ROOT

# Which test reads these blocks from their page and runs them: it has to name the page.
ELSEWHERE = {
    "boards/test_access.py": ["docs/guides/access.md-conf"],
    "boards/test_image.py": [
        "docs/reference/board-profiles.md-python",
        "docs/reference/board-profiles.md-toml",
    ],
    "docs/test_guides.py": [
        "docs/guides/asyncio.md-python",
        "docs/guides/moving.md-python",
        "docs/guides/packages.md-python",
        "docs/guides/sensor-node.md-python",
        "docs/guides/tls.md-python",
        "docs/reference/fleet-tables.md-python",
    ],
    "docs/test_kafka.py": ["docs/guides/fleet-cluster.md-python"],
    "docs/test_start.py": ["docs/start/index.md-python", "docs/start/index.md-conf"],
    "fleet/test_queries.py": [
        "docs/guides/fleet-queries.md-python",
        "docs/guides/fleet-queries.md-sql",
    ],
    "journal/test_layout.py": ["docs/reference/journal-format.md-text"],
    "tls/test_errors.py": ["docs/guides/tls.md-sh"],
}
KINDS = {"python", "sql", "sh", "console", "toml", "csv", "conf", "text", "mermaid"}


def here(*kinds):
    """The blocks of these kinds that this file has to check."""
    elsewhere = sum(ELSEWHERE.values(), [])
    all_of_them = [one for kind in kinds for one in blocks.of_kind(kind)]
    found = [one for one in all_of_them if f"{one.page}-{one.kind}" not in elsewhere]
    return pytest.mark.parametrize("block", found, ids=[one.id for one in found])


def test_every_block_has_a_kind_that_is_checked():
    assert [one.id for one in blocks.ALL if one.kind not in KINDS] == []
    assert blocks.INDENTED == []


def test_what_is_checked_elsewhere_is_named_there():
    pages = {f"{one.page}-{one.kind}" for one in blocks.ALL}
    for test, named in ELSEWHERE.items():
        assert set(named) - pages == set()
        for block in named:
            assert block.rpartition("/")[2].rpartition("-")[0] in source(test), (test, block)


def printed_below(block):
    """What the page says that a program prints: the `text` block right behind it, or None."""
    page = (ROOT / block.page).read_text()
    behind = page.partition(f"```python\n{block.text}```\n")[2]
    shown = re.match(r"\n```text\n(.*?)```", behind, re.DOTALL)
    return shown and shown[1]


@here("python")
def test_program_runs_and_prints_what_the_page_says(
    block, tmp_path, micropythons, shared_mosquitto
):
    """Its broker is this test's own: the page's address gets the port.  README's programs run on
    each MicroPython."""
    text = block.text.replace('"127.0.0.1"', f'"127.0.0.1", {shared_mosquitto.port}')
    for one in [CPYTHON, *micropythons[0 if block.page == "README.md" else -1 :]]:
        folder = tmp_path / one.id
        folder.mkdir()
        shutil.copy(ROOT / "firmware" / "fallback.py", folder)  # a page says so
        path = folder / "program.py"
        path.write_text(text)
        done = one.run(path, timeout=SECONDS, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert printed_below(block) in (None, done.stdout)
        if block.id == "README.md-python-0":
            assert "all acknowledged" in done.stdout


def test_readme_has_two_short_programs():
    programs = blocks.texts("README.md", "python")
    assert len(programs) == 2
    assert max(len(text.splitlines()) for text in programs) < 35


def source(test):
    return (ROOT / "host_tests" / test).read_text()


# How tests name a line that they type as it stands on its page: by the words it begins with.
_TYPED = re.compile(r'(?:\.type\(\s*(?:"[^"]*"|\w+), |line_of_the_guide\()"([^"]+)"')
_TYPING = ("boards/test_dist.py", "boards/test_typed.py", "docs/test_typed.py")
# Which test runs these lines: its file has the page's name, or these words, with which
# a line begins.
RUN = {
    **{test: _TYPED.findall(source(test)) for test in _TYPING},
    "boards/test_virtual_board.py": [".venv/bin/mpremote cp", "mpremote cp"],
    "docs/test_start.py": [
        "MICROPYPATH",
        "PYTHONPATH",
        "export PATH",
        "mosquitto -c",
        "mosquitto_pub",
        "mosquitto_sub -i desk",
    ],
    "fleet/cluster.py": ["spark-class"],
    "tls/test_errors.py": ["openssl", "printf"],
}
# What is only checked, as the program itself would take it, and why.
CHECKED = {
    "make test": "is this",
    "make lint": "host_tests/lint runs its parts",
    "python -m host_tests soak": "half an hour; host_tests/soak runs a short one",
    "python -m host_tests proof": "an hour",
    "make build": "host_tests/boards builds for every board, from the same command",
    "make demo": "a minute of one story; host_tests/demo runs its acts",
    "make bench": "a quarter of an hour; host_tests/bench runs its parts",
    "python -m host_tests sim": "runs as long as it is told; host_tests/sim runs it for less",
    "python -m host_tests fuzz": "runs as long as it is told; host_tests/client runs its inputs",
    "python -m host_tests powercut": "minutes; host_tests/journal runs it for less",
    "make audit": "starts Spark once more; host_tests/fleet audits in the one it has",
    "umqtt31 audit": "the same",
    "python -m tools fleet audit": "the same",
    "spark-submit": "needs a cluster; pytest -m cluster host_tests/fleet starts one",
    "dumpcap": "needs the right to listen to a network",
    "mosquitto_sub -q": "runs for ever; host_tests/fleet reads what it writes",
    "mosquitto_sub -t": "the same",
    "pip install": "fetches dependencies; host_tests/boards/test_dist.py installs without",
    "rm": "takes back what the lines above it made",
}


def test_each_line_is_run_or_it_is_said_why_not():
    found = blocks.of_kind("sh") + blocks.of_kind("console")
    lines = [(one.page, " ".join(words)) for one in found for words in commands.lines_in(one)]
    known = (*sum(RUN.values(), []), *CHECKED)
    assert [line for _, line in lines if not line.startswith(known)] == []
    assert [begin for begin in known if not any(x.startswith(begin) for _, x in lines)] == []
    for test, begins in RUN.items():
        for begin in begins:
            named = {begin, *(page for page, line in lines if line.startswith(begin))}
            assert any(words in source(test) for words in named), (begin, test)


@here("sh", "console")
def test_commands_would_be_taken(block):
    found = commands.lines_in(block)
    assert found
    for words in found:
        commands.check(words)


@here("toml")
def test_settings_are_complete_and_right(block):
    found = tomllib.loads(block.text.replace("…", "12345678"))
    assert settings.problems(found, has_wifi=True) == []


@here("csv")
def test_batch_is_taken(block, tmp_path):
    path = tmp_path / "devices.csv"
    path.write_text(block.text.replace("…", "secret"))
    shared = tmp_path / "shared.toml"
    shared.write_text('wifi_ssid = "workshop"\nwifi_password = "12345678"\n')
    assert len(read_batch(path, load_profile("RPI_PICO_W"), shared)) > 1


@here("conf")
def test_broker_starts_with_the_settings(block, tmp_path):
    """Folder and port are this test's own; files that a line names are not there."""
    lines = [line.split(" ", 1) for line in block.text.splitlines()]
    options = {name: value for name, value in lines if "/" not in value and name != "listener"}
    options.pop("require_certificate", None)
    with Mosquitto(tmp_path, **options) as broker:
        assert broker.port


SETTINGS = """
client_id = "hall-1"
server = "192.168.1.10"
wifi_ssid = "workshop"
store = "journal"
streams = [1]
max_inflight = 8
"""
# {words that a shown output begins with: settings that bring it}
ADVICE = {"stream 0": SETTINGS, "Error: device.toml": SETTINGS.replace("server", "servr")}


@here("text")
def test_output_is_what_the_command_prints(block, tmp_path, monkeypatch):
    """What stands behind a program is compared where that is run."""
    programs = [one for one in blocks.of_kind("python") if one.page == block.page]
    if any(printed_below(program) == block.text for program in programs):
        return
    (device,) = [text for begin, text in ADVICE.items() if block.text.startswith(begin)]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "device.toml").write_text(device)
    command = ["boards", "advise", "--board", "RPI_PICO_W", "--config", "device.toml"]
    shown = CliRunner().invoke(main, command).output
    pattern = ".*".join(re.escape(part) for part in block.text.strip().split("…"))
    assert re.search(pattern, shown, re.DOTALL), shown


def test_pictures_are_of_kinds_that_the_site_draws():
    """host_tests/docs/test_browser.py draws them all."""
    first = {block.text.split()[0] for block in blocks.of_kind("mermaid")}
    assert first <= {"flowchart", "sequenceDiagram"}
