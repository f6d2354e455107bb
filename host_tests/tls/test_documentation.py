"""The commands of docs/guides/tls.md, run as they stand there, make certificates that work."""

import re
import subprocess

from host_tests.brokers import TLSMosquitto
from tools.project import ROOT

_PAGE = ROOT / "docs" / "guides" / "tls.md"


def test_certificates_made_by_the_documented_commands_are_accepted(run, tmp_path):
    commands = re.findall(r"```sh\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    assert len(commands) == 2
    for block in commands:
        subprocess.run(["sh", "-ec", block], cwd=tmp_path, check=True, capture_output=True)
    ssl = {"ca": str(tmp_path / "ca.crt")}
    with TLSMosquitto(tmp_path, "broker") as broker:
        found = run("outcomes", [[broker.port, "broker.example", ssl]])
        found += run("outcomes", [[broker.port, "192.0.2.7", ssl]])
    assert found == [b"\x20\x02\x00\x00"] * 2
