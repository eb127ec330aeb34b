"""Make the shared modules of the engine's tests importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
