"""The bounds of what the library costs, as plain numbers: who adds takes away.

They are what was measured when they were set, rounded up.
"""

import ast

import pytest

from tools.boards.places import LIBRARY
from umqtt31 import MQTTClient

from . import measure

# Bytes of plain .mpy.
BYTES = {
    "__init__": 17_080,
    "aio": 4_820,
    "alias": 490,
    "errors": 4_340,
    "fileblockdevice": 1_310,
    "handshake": 2_050,
    "journal": 7_765,
    "opening": 5_105,
    "properties": 2_820,
    "queueing": 3_680,
    "reasons": 1_630,
    "robust": 860,
    "simple": 5_470,
    "sock": 820,
    "sslparams": 720,
    "tls": 420,
    "v5": 7_430,
    "wifi": 1_230,
}
BUILT_BYTES = {"__init__": 15_460}
# On a 32-bit port, after `import umqtt31`.
HEAP = {".mpy": 22_900, "ROMFS": 7_150}
ATTRIBUTES = 60


def test_each_module_has_at_most_its_bytes():
    found = measure.sizes()
    assert found.keys() == BYTES.keys()
    assert {name: size for name, size in found.items() if size > BYTES[name]} == {}


def test_core_as_make_build_makes_it_has_at_most_its_bytes():
    assert measure.sizes(is_built=True)["__init__"] <= BUILT_BYTES["__init__"]


@pytest.mark.parametrize("form", HEAP)
def test_heap_after_import_is_at_most(form):
    heap = measure.heap_after_import()
    assert 0 < heap[form] <= HEAP[form] < heap[".py"] * 2


def test_option_by_its_name_in_the_package_costs_no_more_heap():
    found = measure.heap_after_import("from umqtt31 import Journal")
    direct = measure.heap_after_import("from umqtt31.journal import Journal")
    assert all(found[form] <= direct[form] + 1_000 for form in HEAP)


def test_client_object_has_few_attributes():
    assert len(vars(MQTTClient("id", "server"))) <= ATTRIBUTES


def test_library_has_few_modules():
    assert len(sorted(LIBRARY.glob("*.py"))) <= 18


OWN = ("self", "client", "stats", "context", "_stop")


def test_nobody_writes_another_objects_attributes():
    """But `self`; `client`, as functions of a module call the object that they belong to; and the
    client counts in its `stats`.  Python's own: a TLS context, the traceback of an exception."""
    for path in sorted(LIBRARY.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            for target in targets if isinstance(node, ast.Assign | ast.AugAssign) else ():
                for one in ast.walk(target):
                    if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store):
                        owner = ast.unparse(one.value)
                        assert owner.rpartition(".")[2] in OWN, (path.name, ast.unparse(node))
