"""Read responses of limited size from a server or gateway. `deadline` limits the time."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from lakewright.errors import LakewrightError

MEBIBYTE = 1 << 20
ENCODINGS = "gzip"
"""The encoding that requests accept. No other encoding has a decoder here that stops at a size."""


class UnusableResponseError(LakewrightError):
    """A response that cannot be read completely. Its message continues a sentence after "the response"."""


def retry_after(value: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> float | None:
    """Return the seconds of a `Retry-After` header, a number or a date; None for other values and negative numbers."""
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    seconds = (at if at.tzinfo else at.replace(tzinfo=UTC)) - now()
    return max(0.0, seconds.total_seconds())


def limit_size(limit: int) -> Callable[[httpx.Response], None]:
    """Return a response hook for httpx that limits the size of bodies.

    Args:
        limit: Bytes, after decompression.
    """

    def hook(response: httpx.Response) -> None:
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding:
            # Decompressed here: httpx would decompress a whole chunk before its size can be checked.
            del response.headers["content-encoding"]
        response.stream = _Bounded(response, encoding, limit)

    return hook


class _Bounded(httpx.SyncByteStream):
    """A body that raises UnusableResponseError beyond its limit."""

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
    """Decompresses gzip, at most one byte beyond the remaining size."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self.is_complete = True
        """Whether the data so far is empty, or ends at the end of a member."""

    def decode(self, chunk: bytes, room: int) -> bytes:
        parts: list[bytes] = []
        while chunk and room >= 0:
            if self._member.eof:
                self._member = zlib.decompressobj(16 + zlib.MAX_WBITS)
            try:
                parts.append(self._member.decompress(chunk, room + 1))
            except zlib.error:
                raise UnusableResponseError("is not gzip data, although its header says so") from None
            room -= len(parts[-1])
            self.is_complete = self._member.eof
            chunk = self._member.unused_data
        return b"".join(parts)
