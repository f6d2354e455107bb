"""Python that runs on the board, not here; `source()` reads it, mpremote sends it.

Each script prints one JSON object in its last line.
"""

import json
from pathlib import Path


def source(name, **values):
    """The script `name`, preceded by an assignment for each of `values`."""
    head = "".join(f"{key} = {value!r}\n" for key, value in values.items())
    return head + (Path(__file__).parent / f"{name}.py").read_text()


def answer(output):
    """The JSON object in the last line that a script printed."""
    return json.loads(output.strip().splitlines()[-1])
