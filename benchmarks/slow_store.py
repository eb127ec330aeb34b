"""An object store whose listings take as long as on S3. It generates pages, and forwards the rest."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from urllib.parse import parse_qs

import httpx
from starlette.types import Receive, Scope, Send

PAGE_KEYS = 1000
_FRAMING = {b"connection", b"content-length", b"transfer-encoding", b"expect"}
_ENCODED = {b"content-length", b"content-encoding", b"transfer-encoding", b"connection"}
_ENTRY = (
    "<Contents><Key>{key}</Key><LastModified>2020-01-01T00:00:00.000Z</LastModified>"
    '<ETag>"0123456789abcdef0123456789abcdef"</ETag><Size>104857600</Size><StorageClass>STANDARD</StorageClass></Contents>'
)


@dataclass
class SlowStore:
    """A store in front of `upstream`. While `commits` is set, it has `files` files of each commit below `data/`.

    The keys are the keys of `tests/spark/maintenance/java/GeneratedFiles.java` with a single partition.
    """

    upstream: str
    latency: float
    """Seconds of a page."""
    commits: int = 0
    files: int = 0
    pages: int = 0
    """Pages served so far."""
    http: httpx.AsyncClient = field(default_factory=lambda: httpx.AsyncClient(timeout=60, trust_env=False))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            return
        query = {name: values[0] for name, values in parse_qs(scope["query_string"].decode()).items()}
        if self.commits and query.get("list-type") == "2":
            await asyncio.sleep(self.latency)
            body = self._build_page(scope["path"].strip("/"), query).encode()
            status, headers = 200, [(b"content-type", b"application/xml")]
        else:
            status, headers, body = await self._forward(scope, receive)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _build_page(self, bucket: str, query: dict[str, str]) -> str:
        after = query.get("continuation-token") or query.get("start-after", "")
        first = self._find_first(query["prefix"], after)
        keys = list(self._list_keys(query["prefix"], first, first + PAGE_KEYS))
        is_truncated = first + PAGE_KEYS < self.commits * self.files
        self.pages += 1
        return (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{bucket}</Name><Prefix>{escape(query['prefix'])}</Prefix><KeyCount>{len(keys)}</KeyCount>"
            f"<MaxKeys>{PAGE_KEYS}</MaxKeys><IsTruncated>{str(is_truncated).lower()}</IsTruncated>"
            + (f"<NextContinuationToken>{keys[-1]}</NextContinuationToken>" if is_truncated else "")
            + "".join(_ENTRY.format(key=key) for key in keys)
            + "</ListBucketResult>"
        )

    def _find_first(self, prefix: str, after: str) -> int:
        match = re.fullmatch(re.escape(prefix) + r"data/part=0/(\d{5})-(\d{5})-.*", after)
        return int(match[1]) * self.commits + int(match[2]) + 1 if match else 0

    def _list_keys(self, prefix: str, first: int, end: int) -> Iterator[str]:
        for number in range(first, min(end, self.commits * self.files)):
            yield f"{prefix}data/part=0/{number // self.commits:05d}-{number % self.commits:05d}-0a1b2c3d4e5f.parquet"

    async def _forward(self, scope: Scope, receive: Receive) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        body, has_more = b"", True
        while has_more:
            message = await receive()
            body, has_more = body + message.get("body", b""), message.get("more_body", False)
        path = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        headers = [(key, value) for key, value in scope["headers"] if key not in _FRAMING]
        response = await self.http.request(
            scope["method"], self.upstream + path.decode(), headers=headers, content=body
        )
        is_head = scope["method"] == "HEAD"
        response_headers = [
            (key, value) for key, value in response.headers.raw if is_head or key.lower() not in _ENCODED
        ]
        return response.status_code, response_headers, response.content
