"""Nothing allocates after the handshake; too little memory for it is said."""

import json
from pathlib import Path

import pytest

from host_tests.tls.conftest import FULL
from tools.project import ROOT

_FOLDER = Path(__file__).parent
_NO_MEMORY = "no memory for TLS: it takes 50,000 bytes, 17,000 of them in one piece"


@pytest.fixture(params=FULL, ids=lambda one: one.id)
def script(request):
    """Run a script of this folder: script(name, *arguments) -> what it printed."""

    def run(name, *args):
        done = request.param.run(
            _FOLDER / name, args=args, micropypath=[ROOT, ROOT / "lib"], heap_bytes=512 * 1024
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    return run


def test_messages_over_tls_with_locked_heap(script, brokers, certificates, tmp_path):
    ssl = certificates.ssl("device")
    path = tmp_path / "arguments.json"
    path.write_text(json.dumps([brokers.port("server", is_strict=True), ssl]))
    assert script("locked.py", path) == "[20, 20, 20] 0"


def test_handshake_without_memory_says_how_much_it_takes(script, brokers, certificates):
    """At whatever point of the handshake the memory ends."""
    found = [
        script("starved.py", brokers.port(), certificates.file("ca.crt"), kilobytes)
        for kilobytes in (20, 45, 200)
    ]
    assert found == [_NO_MEMORY, _NO_MEMORY, r"b' \x02\x00\x00'"]
