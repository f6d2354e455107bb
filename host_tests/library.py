"""Makes the device library importable from a checkout, installed or not."""

import importlib.util
import sys
from pathlib import Path

if importlib.util.find_spec("umqtt31") is None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
