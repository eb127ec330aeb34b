"""Read answers within a size, whatever a server or a gateway before it sends. The deadline is in `api.deadline`."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from lakewright.lakekeeper.api.connection.errors import BadResponseError, Call

MEBIBYTE = 1 << 20
ENCODINGS = "gzip"
"""The encoding that requests accept. No other has a decoder here that stops at a size."""


class UnusableResponseError(Exception):
    """An answer that is not read to its end. The message says why, after "the answer"."""


class ResponseBody(dict[str, Any]):
    """An object of an answer. A key that is missing is one sentence, not a KeyError."""

    __slots__ = ("call",)
    call: Call

    def __missing__(self, key: str) -> Any:
        """Raise BadResponseError for a key that the response lacks."""
        raise BadResponseError(
            f"{self.call} answered without `{key}`. Is this a Lakekeeper server of a supported version?"
        )


def parse_json(call: Call, answer: httpx.Response) -> Any:
    """Return the JSON of an answer, its objects as `ResponseBody`; None if it is not JSON, or is nested too deeply."""

    def read(members: dict[str, Any]) -> ResponseBody:
        found = ResponseBody(members)
        found.call = call
        return found

    try:
        return json.loads(answer.content, object_hook=read)
    except (ValueError, RecursionError):
        return None


def retry_after(value: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> float | None:
    """Return the seconds of a `Retry-After`: a number or a date. None for anything else, such as a negative number."""
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    seconds = (at if at.tzinfo else at.replace(tzinfo=UTC)) - now()
    return max(0.0, seconds.total_seconds())


def bounded(limit: int) -> Callable[[httpx.Response], None]:
    """Return a response hook for httpx that lets no body grow beyond a size.

    Args:
        limit: Bytes, after decompression.
    """

    def hook(response: httpx.Response) -> None:
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding:
            # Decoded here: httpx would decompress a whole chunk before its size can be checked.
            del response.headers["content-encoding"]
        response.stream = _Bounded(response, encoding, limit)

    return hook


class _Bounded(httpx.SyncByteStream):
    """A body that ends in UnusableResponseError where it passes its bounds."""

    def __init__(self, response: httpx.Response, encoding: str, limit: int) -> None:
        assert isinstance(response.stream, httpx.SyncByteStream)
        self._stream, self._encoding, self._limit = response.stream, encoding, limit

    def __iter__(self) -> Iterator[bytes]:
        if self._encoding not in {"", "identity", "gzip", "x-gzip"}:
            raise UnusableResponseError(f"is encoded as {self._encoding[:40]!r}, which was not asked for")
        gunzip = _Gunzip() if "gzip" in self._encoding else None
        room = self._limit
        for chunk in self._stream:
            data = chunk if gunzip is None else gunzip.decode(chunk, room)
            room -= len(data)
            if room < 0:
                raise UnusableResponseError(f"is larger than {self._limit / MEBIBYTE:g} MiB")
            yield data
        if gunzip is not None and not gunzip.is_complete:
            raise UnusableResponseError("ends in the middle of its gzip data")

    def close(self) -> None:
        self._stream.close()


class _Gunzip:
    """Decompresses gzip, one byte beyond the room that is left at most."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self.is_complete = True
        """Whether the data so far is nothing, or ends where a member ends."""

    def decode(self, chunk: bytes, room: int) -> bytes:
        parts: list[bytes] = []
        while chunk and room >= 0:
            if self._member.eof:
                self._member = zlib.decompressobj(16 + zlib.MAX_WBITS)
            try:
                parts.append(self._member.decompress(chunk, room + 1))
            except zlib.error:
                raise UnusableResponseError("is no gzip data, although it says so") from None
            room -= len(parts[-1])
            self.is_complete = self._member.eof
            chunk = self._member.unused_data
        return b"".join(parts)
