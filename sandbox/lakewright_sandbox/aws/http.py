"""An HTTP request as received, not yet interpreted."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, unquote


@dataclass(frozen=True)
class HttpRequest:
    """Method, undecoded path and query, headers in lower case, and the whole body."""

    method: str
    raw_path: str
    raw_query: str
    headers: dict[str, str]
    body: bytes
    remote_address: str

    @cached_property
    def query(self) -> dict[str, str]:
        """Return the decoded query parameters. A plus sign is kept: S3 does not decode it as a space."""
        pairs = (pair.partition("=") for pair in self.raw_query.split("&") if pair)
        return {unquote(name): unquote(value) for name, _, value in pairs}

    @cached_property
    def parameters(self) -> dict[str, str]:
        """Return the parameters of a query-service call, from the body or the URL."""
        form = parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True)
        return dict(form) if self.method == "POST" else dict(parse_qsl(self.raw_query, keep_blank_values=True))


def from_environ(environ: dict[str, Any]) -> HttpRequest:
    """Read a WSGI request, and rewind its body for the next reader."""
    stream = environ["wsgi.input"]
    body = stream.read()
    stream.seek(0)
    names = environ.get("moto.preserved_header_names", {})
    headers = {
        names.get(key, key[5:].replace("_", "-")).lower(): value
        for key, value in environ.items()
        if key.startswith("HTTP_")
    }
    headers["content-length"] = environ["CONTENT_LENGTH"]
    if "CONTENT_TYPE" in environ:
        headers["content-type"] = environ["CONTENT_TYPE"]
    path, _, _ = environ["RAW_URI"].partition("?")
    return HttpRequest(
        method=environ["REQUEST_METHOD"],
        raw_path=path,
        raw_query=environ["QUERY_STRING"],
        headers=headers,
        body=body,
        remote_address=environ["REMOTE_ADDR"],
    )
