"""Lets the engine's tests import what they share: `stackrunner`, and the provider `filestore` that their programs use."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
