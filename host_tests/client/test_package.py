"""What `from umqtt31 import …` finds, by every way that a program may write it."""

from host_tests.running import CPYTHON

PROGRAM = """
from umqtt31 import *
print(MQTTClient.__name__, Message.__name__, MQTTError.__name__)
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
PRINTED = "MQTTClient Message MQTTError\nTrue True True\nTrue True\nnosuch\n_nosuch\n"


def test_modules_and_names_are_found_in_the_package(micropythons, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    for one in (CPYTHON, *micropythons):
        done = one.run(path)
        assert (done.stdout, done.stderr) == (PRINTED, "")
