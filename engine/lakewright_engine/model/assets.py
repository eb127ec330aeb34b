"""Assets and archives: compute the hashes that the CLI compares, and restore contents that providers leave out."""

from __future__ import annotations

import hashlib
import os
import posixpath
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

from lakewright_engine.model.errors import ProgramError
from lakewright_engine.model.gotar import write_tar
from lakewright_engine.model.properties import has_asset, rewrite
from lakewright_engine.model.resources import Asset, Properties, Value
from lakewright_engine.model.signatures import ARCHIVE, SIGNATURE

_ARCHIVE_ENDINGS = (".tar", ".tgz", ".tar.gz", ".zip", ".jar")
_SECONDS = 60
_CONTENTS = ("text", "path", "uri", "assets")

Member = tuple[str, bytes]
"""Name and content of a file in an archive."""


def add_hashes(properties: Properties, folder: Path) -> Properties:
    """Return the properties with the hash of every asset and archive that has none.

    Args:
        properties: Properties from the program.
        folder: The program's working directory, where relative paths start.

    Raises:
        ProgramError: An asset cannot be read.
    """
    if not has_asset(properties):
        return properties
    return {key: rewrite(value, lambda item: _hash_asset(item, folder)) for key, value in properties.items()}


def restore_contents(response: Properties, sources: Properties) -> Properties:
    """Return a provider's response with the asset contents that it left out, found in `given` by hash."""
    if not has_asset(response):
        return response
    assets_by_hash: dict[str, Asset] = {}

    def note(value: Value) -> Value:
        if isinstance(value, Asset) and value.wire.get("hash"):
            assets_by_hash[value.wire["hash"]] = value
        return value

    for value in sources.values():
        rewrite(value, note)

    def restore(value: Value) -> Value:
        if isinstance(value, Asset) and not any(value.wire.get(part) for part in _CONTENTS):
            return assets_by_hash.get(value.wire.get("hash", ""), value)
        return value

    return {key: rewrite(value, restore) for key, value in response.items()}


def _hash_asset(value: Value, folder: Path) -> Value:
    if not isinstance(value, Asset) or value.wire.get("hash"):
        return value
    try:
        return Asset(_hash_wire(value.wire, folder))
    except (OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise ProgramError(f"an asset cannot be read: {error}; relative paths start at {folder}") from error


def _hash_wire(wire: dict[str, Any], folder: Path) -> dict[str, Any]:
    if isinstance(wire.get("assets"), dict):
        parts: dict[str, Any] = {name: _hash_wire(part, folder) for name, part in wire["assets"].items()}
        wire = {**wire, "assets": parts}
    if wire.get("hash"):
        return wire
    if wire[SIGNATURE] != ARCHIVE:
        return {**wire, "hash": hashlib.sha256(_asset_content(wire, folder)).hexdigest()}
    digest = hashlib.sha256()
    source = str(wire.get("path") or urlsplit(str(wire.get("uri", ""))).path)
    if source.endswith(_ARCHIVE_ENDINGS):
        digest.update(_asset_content(wire, folder))
    else:
        write_tar(_drop_repeats(_members(wire, folder)), digest.update)
    return {**wire, "hash": digest.hexdigest()}


def _asset_content(wire: dict[str, Any], folder: Path) -> bytes:
    if wire.get("path"):
        return (folder / wire["path"]).read_bytes()
    if wire.get("uri"):
        uri = str(wire["uri"])
        if urlsplit(uri).scheme not in ("http", "https", "file"):
            raise ProgramError(f"the asset {uri} has an unknown scheme: expected http, https or file")
        with urlopen(uri, timeout=_SECONDS) as response:  # noqa: S310 - the scheme is one of those above
            return response.read()
    return str(wire.get("text", "")).encode()


def _members(wire: dict[str, Any], folder: Path) -> Iterator[Member]:
    if isinstance(wire.get("assets"), dict):
        for name, part in sorted(wire["assets"].items()):
            if part[SIGNATURE] == ARCHIVE:
                yield from ((posixpath.join(name, inner), content) for inner, content in _members(part, folder))
            else:
                yield name, _asset_content(part, folder)
        return
    path = folder / str(wire.get("path", ""))
    if path.is_dir():
        yield from _files(path, path)
    elif path.name.endswith((".zip", ".jar")):
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if not entry.is_dir():
                    yield entry.filename, archive.read(entry)
    elif path.name.endswith(_ARCHIVE_ENDINGS):
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile() and (content := archive.extractfile(member)) is not None:
                    yield member.name, content.read()
    else:
        raise ProgramError(f"'{path}' is neither a recognized archive type nor a directory")


def _files(root: Path, folder: Path) -> Iterator[Member]:
    """Yield the files of a folder by name, without links to folders and without `.pulumi`, as the CLI does."""
    for entry in sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name)):
        if entry.name == ".pulumi":
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _files(root, Path(entry.path))
        elif not entry.is_dir():
            path = Path(entry.path)
            yield path.relative_to(root).as_posix(), path.read_bytes()


def _drop_repeats(members: Iterable[Member]) -> Iterator[Member]:
    names: set[str] = set()
    for name, content in members:
        if name not in names:
            names.add(name)
            yield name, content
