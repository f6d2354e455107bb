"""Makes the device library importable from a checkout, installed or not."""

import sys
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[2] / "lib"

if str(LIBRARY) not in sys.path:
    sys.path.insert(0, str(LIBRARY))
