"""Puts this folder on the path, so that its tests find the wrong clients."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
