"""The site, built once for all tests of this folder."""

import subprocess
import sys

import pytest

from tools.project import ROOT


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the site, built as `make docs` does it, where a warning is an error."""
    out = tmp_path_factory.mktemp("site") / "site"
    command = [sys.executable, "-m", "tools", "docs", "build", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return out
