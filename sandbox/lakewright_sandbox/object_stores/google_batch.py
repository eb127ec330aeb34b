"""Batch requests of Google Cloud Storage: several calls of the JSON API in one request, as `multipart/mixed`.

Source: Google, "Sending batch requests". Google's Java client deletes objects in batches. Headers of the whole request
apply to each call that does not have them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from email.parser import BytesParser
from http import HTTPStatus
from typing import cast

_REQUEST_LINE = re.compile(r"(?P<method>[A-Z]+) (?:https?://[^/ ]+)?(?P<target>/[^ ]*) HTTP/1\.1")
BOUNDARY = "batch_of_responses"


@dataclass(frozen=True)
class BatchCall:
    """One call of a batch."""

    method: str
    path: str
    query: str
    token: str


@dataclass(frozen=True)
class BatchResult:
    """The response to one call."""

    status: int
    body: bytes = b""


def parse_batch(content_type: str, body: bytes, token: str) -> list[BatchCall]:
    """Return the calls of a batch.

    Args:
        content_type: Header of the request, with its boundary.
        body: Body of the request.
        token: Value of `Authorization` of the request.

    Raises:
        ValueError: A part is not an HTTP request.
    """
    message = BytesParser().parsebytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    calls: list[BatchCall] = []
    for part in message.walk():
        if part.is_multipart():
            continue
        content = cast(bytes, part.get_payload(decode=True))
        first, _, header_lines = content.lstrip().partition(b"\n")
        line = _REQUEST_LINE.fullmatch(first.decode().strip())
        if line is None:
            raise ValueError("expected an HTTP request in each part of a batch")
        path, _, query = line["target"].partition("?")
        headers = BytesParser().parsebytes(header_lines, headersonly=True)
        calls.append(BatchCall(line["method"], path, query, headers.get("Authorization", token)))
    return calls


def format_batch(results: Sequence[BatchResult]) -> bytes:
    """Return the body of the response to a batch, with the results in the order of the calls."""
    parts: list[bytes] = []
    for number, result in enumerate(results, 1):
        head = (
            f"--{BOUNDARY}\r\nContent-Type: application/http\r\nContent-ID: <response-{number}>\r\n\r\n"
            f"HTTP/1.1 {result.status} {HTTPStatus(result.status).phrase}\r\n"
            f"Content-Type: application/json; charset=UTF-8\r\nContent-Length: {len(result.body)}\r\n\r\n"
        )
        parts.append(head.encode() + result.body + b"\r\n")
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()
