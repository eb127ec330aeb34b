"""Read the JSON of a checkpoint, and check the shape on which every reader relies."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any, cast

from lakewright_engine.model.errors import DamagedStateError, UnsupportedStateError
from lakewright_engine.state.checkpoint_reader import check_version

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


def parse_checkpoint(content: bytes, stack: str, location: str) -> dict[str, Any]:
    """Return a checkpoint from the content of its file.

    Args:
        content: The content, plain or compressed with gzip.
        stack: The stack's name, for errors.
        location: The path or URL of the file, for errors.

    Raises:
        DamagedStateError: The content is truncated, is not JSON, or has values of wrong types.
        UnsupportedStateError: The content is compressed with zstd, or a later release wrote it.
    """
    if content.startswith(_ZSTD):
        raise UnsupportedStateError(
            f"the state of stack '{stack}' ({location}) is compressed with zstd: unset PULUMI_DIY_BACKEND_ZSTD and run "
            "`pulumi up`, or use --engine pulumi"
        )
    try:
        checkpoint = parse_object(content)
        _check_shape(checkpoint)
    except ValueError as error:
        raise DamagedStateError(
            f"the state of stack '{stack}' ({location}) is damaged: {error}; restore the previous state with "
            f"`lakewright stack import --stack {stack} --backup`, or import an export with --file FILE"
        ) from error
    try:
        check_version(stack, checkpoint.get("version", 0), checkpoint.get("features") or [])
    except UnsupportedStateError as error:
        raise UnsupportedStateError(f"{error} ({location}). Update lakewright, or use --engine pulumi") from None
    return checkpoint


def decompress(content: bytes) -> bytes | None:
    """Return the text of a file, plain or compressed with gzip; None if its compression cannot be read."""
    if content.startswith(_ZSTD):
        return None
    if not content.startswith(_GZIP):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        return None


def decompress_zstd(content: bytes) -> bytes:
    """Return the text of a file that may be compressed with zstd. Any other file is returned as it is.

    Raises:
        ImportError: The package `zstandard`, which the extra `zstd` has, is not installed.
        ValueError: The compression is damaged.
    """
    if not content.startswith(_ZSTD):
        return content
    import zstandard  # noqa: PLC0415 - optional

    try:
        with zstandard.ZstdDecompressor().stream_reader(content) as reader:  # sizes are not in all frames
            return reader.read()
    except zstandard.ZstdError as error:
        raise ValueError(f"its compression is damaged ({error})") from error


def parse_object(content: bytes) -> dict[str, Any]:
    """Return a JSON object, plain or compressed with gzip.

    Raises:
        ValueError: The content is not a JSON object.
    """
    if content.startswith(_GZIP):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"its compression is incomplete ({error})") from error
    try:
        value: Any = json.loads(content)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return _object(value, "it")


def get_latest(checkpoint: dict[str, Any]) -> dict[str, Any] | None:
    """Return the deployment in a checkpoint; None for a stack that was created and never written."""
    body: dict[str, Any] = checkpoint.get("checkpoint") or {}
    return body.get("latest")


def _check_shape(checkpoint: dict[str, Any]) -> None:
    version = checkpoint.get("version", 0)
    if not isinstance(version, int) or isinstance(version, bool):
        raise ValueError("version is not a number")  # noqa: TRY004 - callers expect ValueError for all damage
    _list(checkpoint.get("features"), "features", str)
    latest = _object(_object(checkpoint.get("checkpoint"), "checkpoint").get("latest") or {}, "checkpoint.latest")
    for key in ("manifest", "secrets_providers", "metadata"):
        _object(latest.get(key) or {}, key)
    for index, resource in enumerate(_list(latest.get("resources"), "resources", dict)):
        _check_resource(resource, f"resources[{index}]")
    for index, operation in enumerate(_list(latest.get("pending_operations"), "pending_operations", dict)):
        member_path = f"pending_operations[{index}]"
        if not isinstance(operation.get("type"), str):
            raise ValueError(f"{member_path}.type is not text")  # noqa: TRY004
        _check_resource(_object(operation.get("resource"), f"{member_path}.resource"), f"{member_path}.resource")


def _check_resource(resource: dict[str, Any], member_path: str) -> None:
    for key in ("urn", "type"):
        if not isinstance(resource.get(key), str):
            raise ValueError(f"{member_path}.{key} is not text")  # noqa: TRY004
    for key in ("inputs", "outputs"):
        _object(resource.get(key) or {}, f"{member_path}.{key}")


def _object(value: Any, label: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{label} is not a JSON object")  # noqa: TRY004
    return cast("dict[str, Any]", value)


def _list(value: Any, label: str, kind: type) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, kind) for item in cast("list[Any]", value)):
        raise ValueError(f"{label} is not a list of {'text' if kind is str else 'objects'}")
    return cast("list[Any]", value)
