"""Create a file only if no file has its name, in one step: S3 by a condition of the request, local disks by a link."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.fsspec import FsspecFileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

_S3_SCHEMES = ("s3", "s3a", "s3n")


def create_file(io: PyArrowFileIO, location: str, content: bytes) -> None:
    """Create a file. Readers see the whole file or no file.

    Stores other than S3 and local disks are asked for the file before it is written, so a writer in the same moment
    can overwrite it. So can writers in S3-compatible stores that ignore `If-None-Match`.

    Args:
        io: The client of the store.
        location: Address of the file.
        content: Its content.

    Raises:
        CommitFailedException: The file exists.
        OSError: The store refused.
    """
    scheme, _, path = io.parse_location(location, io.properties)
    if scheme in _S3_SCHEMES:
        _create_object(io, location, path, content)
    elif scheme == "file":
        _create_local_file(Path(path), content)
    else:
        try:
            with io.new_output(location).create(overwrite=False) as stream:
                stream.write(content)
        except FileExistsError:
            raise _build_error(location) from None


def _create_object(io: PyArrowFileIO, location: str, path: str, content: bytes) -> None:
    files = cast(Any, FsspecFileIO(io.properties).get_fs("s3"))
    try:
        files.pipe_file(path, content, mode="create")  # s3fs takes the scheme `s3n` for a part of the path
    except OSError:
        current = None
        with suppress(OSError), io.new_input(location).open() as stream:
            current = stream.read()
        if current is None:
            raise
        if current != content:  # equal content: a repeated request, whose first response was lost
            raise _build_error(location) from None


def _create_local_file(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{uuid4().hex}")
    draft.write_bytes(content)
    try:
        os.link(draft, path)
    except FileExistsError:
        raise _build_error(str(path)) from None
    finally:
        draft.unlink()


def _build_error(location: str) -> CommitFailedException:
    return CommitFailedException(f"version {location} was written by another writer")
