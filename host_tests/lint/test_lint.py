"""Lint's own checks find what they are there to find."""

from host_tests.lint import cli, ports
from host_tests.running import said_by


def test_missing_on_finds_a_name_that_the_port_does_not_have(tmp_path):
    source = tmp_path / "device.py"
    lines = ["import esp32", "import time", "from machine import Pin, Lever"]
    lines += ["x = time.ticks_ms()", "x = time.monotonic()", "x = Pin(2)"]
    source.write_text("\n".join(lines))

    def numbers(port):
        found = ports.missing_on(port, (str(source),))
        return sorted(int(line.split(":")[1]) for line in found)

    assert numbers("esp32") == [3, 5]
    assert numbers("rp2") == [1, 3, 5]


def test_lint_runs_all_checks_and_names_those_that_failed(monkeypatch):
    checks = {"good": lambda: True, "bad": lambda: False, "worse": lambda: False}
    monkeypatch.setattr(cli, "CHECKS", checks)
    assert "lint: mend what bad, worse found" in said_by(cli.cli, "all", status=1)
    said_by(cli.cli, "nonsense", status=2)


def test_boards_check_shows_file_and_architecture_of_a_mistake(monkeypatch, tmp_path, capsys):
    source = tmp_path / "lib" / "wrong.py"
    source.parent.mkdir()
    source.write_text("def f(:\n    pass\n")
    monkeypatch.setattr(cli, "ROOT", tmp_path)
    assert cli.boards() is False
    shown = capsys.readouterr().out
    assert "wrong.py" in shown and "rv32imc" in shown
    source.write_text("def f():\n    pass\n")
    assert cli.boards() is True
