"""What `from umqtt31 import …` finds, by every way that a program may write it."""

import subprocess
import sys

from tools.project import ROOT

PROGRAM = """
from umqtt31 import FULL, FileBlockDevice, Journal, MQTTClient, MQTTError
from umqtt31 import aio, journal, robust, simple
import umqtt31
print(umqtt31.aio is aio, umqtt31.FULL == FULL, Journal is journal.Journal)
print(simple.MQTTClient is not MQTTClient, issubclass(robust.MQTTClient, simple.MQTTClient))
for name in ("nosuch", "_nosuch"):
    try:
        getattr(umqtt31, name)
    except AttributeError as error:
        print(error)
"""
PRINTED = "True True True\nTrue True\nnosuch\n_nosuch\n"


def test_modules_and_names_are_found_in_the_package(micropythons, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    command = [sys.executable, str(path)]
    environment = {"PYTHONPATH": str(ROOT / "lib")}
    results = [subprocess.run(command, capture_output=True, text=True, env=environment)]
    results += [one.run(path, micropypath=[ROOT / "lib"]) for one in micropythons]
    for done in results:
        assert (done.stdout, done.stderr) == (PRINTED, "")
