"""Script of `command_server`: the warm process of the product, whose commands share derived keys."""

from __future__ import annotations

import sys
from pathlib import Path

from lakewright.warm import process

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    from shared_keys import share_keys

    del sys.path[0]  # commands import no part of the tests
    share_keys(Path(sys.argv[1]).parent)
    process.main()
