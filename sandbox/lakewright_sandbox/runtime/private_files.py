"""Write files that only their owner may read."""

import os
from pathlib import Path


def write_private(path: Path, content: bytes) -> None:
    """Replace a file in one step, readable by its owner alone, so that no reader sees a partial file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)  # of a process with the same id that was killed
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    temporary.replace(path)
