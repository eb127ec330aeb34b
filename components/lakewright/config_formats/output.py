"""Write the files of a format into a folder, without a change of other files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lakewright.config_formats.errors import RefusedFormatError


def write_files(files: Mapping[str, str], folder: Path, *, overwrite: bool = False) -> list[Path]:
    """Write files into a folder, which is created, and return their paths.

    Args:
        files: Text by file name.
        folder: The folder.
        overwrite: Replace files that have other content.

    Raises:
        RefusedFormatError: A file has other content, or cannot be written. No file was changed.
    """
    for name in files:
        if name != Path(name).name:
            raise RefusedFormatError(f"--out {folder}: expected a name without slashes, found the file name {name!r}")
    paths = {folder / name: text for name, text in files.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        changed = [path for path, text in paths.items() if path.exists() and path.read_text("utf-8") != text]
        if changed and not overwrite:
            names = ", ".join(path.name for path in changed)
            raise RefusedFormatError(
                f"--out {folder}: {names} exists with other content; give --overwrite to replace it"
            )
        for path, text in paths.items():
            path.write_text(text, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RefusedFormatError(f"--out {folder}: cannot be written: {error}") from None
    return list(paths)
