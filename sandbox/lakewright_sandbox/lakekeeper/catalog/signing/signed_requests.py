"""The objects that a request accesses, and which requests can be signed."""

from __future__ import annotations

import posixpath
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit
from xml.etree import ElementTree

from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import Body
from lakewright_sandbox.lakekeeper.storage.access import WarehouseStorage

COPY_SOURCE = "x-amz-copy-source"

LISTING_PARAMETERS = frozenset(
    {
        *("prefix", "list-type", "delimiter", "max-keys", "continuation-token", "start-after"),
        *("encoding-type", "fetch-owner", "x-id"),
    }
)
# A parameter can select another operation (`?acl`). Real servers sign such requests too; the sandbox refuses them.
OBJECT_PARAMETERS = frozenset(
    {
        *("partnumber", "uploadid", "uploads", "versionid", "x-id", "max-parts", "part-number-marker", COPY_SOURCE),
        *("response-cache-control", "response-content-disposition", "response-content-encoding"),
        *("response-content-language", "response-content-type", "response-expires"),
    }
)


class SignRequest(Body):
    """An S3 request to sign."""

    region: str
    uri: str
    method: str
    headers: dict[str, list[str]]
    body: str | None = None


def copy_sources(request: SignRequest) -> list[str]:
    """Return the `s3://` URIs that a request copies from; S3 takes `bucket/key`, encoded, with or without a slash."""
    names_and_values = [
        *request.headers.items(),
        *parse_qs(urlsplit(request.uri).query, keep_blank_values=True).items(),
    ]
    sources = [value for name, values in names_and_values if name.lower() == COPY_SOURCE for value in values]
    return [f"s3://{unquote(source.partition('?')[0]).removeprefix('/')}" for source in sources]


def list_uris(storage: WarehouseStorage, request: SignRequest, *, listings: bool) -> list[str]:
    """Return the `s3://` URIs that a request accesses: its object, the prefix it lists, or the objects it deletes.

    Without `listings`, as on released servers, every request but a DeleteObjects needs a key. Error types come from
    the real server (`s3_signer/sign.rs`).
    """
    parts = urlsplit(request.uri)
    bucket, key = _parse_address(storage, parts)
    query, method = parse_qs(parts.query, keep_blank_values=True), request.method.upper()
    if method == "POST" and "delete" in parts.query:
        if request.body is None:
            raise ApiError(400, "DeleteWithoutBody", "Delete requests require a body")
        if listings:
            _require_bucket(key)
        return [f"s3://{bucket}/{deleted}" for deleted in parse_deleted_keys(request.body)]
    if listings and method == "GET" and "2" in query.get("list-type", ()):
        _require_bucket(key)
        return [f"s3://{bucket}/{_list_prefix(query)}"]
    if not key:
        raise ApiError(400, "UriNotS3", "URI does not match S3 host or path style")
    names = {name.lower() for name in query}
    if not names <= OBJECT_PARAMETERS:
        message = f"Cannot sign {method} of `{key}` with {', '.join(f'`{name}`' for name in sorted(names))}."
        raise ApiError(403, "SignRequestOutsideLocation", message)
    return [f"s3://{bucket}/{key}"]


def _parse_address(storage: WarehouseStorage, parts: SplitResult) -> tuple[str, str]:
    """Return bucket and key of a URI, without dot segments, which URL libraries resolve."""
    path = posixpath.normpath(f"/{unquote(parts.path)}").lstrip("/")
    host, style = parts.hostname or "", storage.profile.remote_signing_url_style
    if style == "virtual_host" or (style == "auto" and host.startswith(f"{storage.profile.bucket}.")):
        return host.partition(".")[0] if style == "virtual_host" else storage.profile.bucket, path
    bucket, _, key = path.partition("/")
    return bucket, key


def _require_bucket(key: str) -> None:
    if key:
        raise ApiError(400, "UriNotBucket", "Bucket-level requests must not address an object")


def _list_prefix(query: dict[str, list[str]]) -> str:
    """Return the prefix that a listing requests."""
    for name, values in query.items():
        if name not in LISTING_PARAMETERS:
            message = f"Unsupported query parameter for a list request: `{name}`"
            raise ApiError(400, "UnsupportedListParameter", message)
        if len(values) > 1:
            raise ApiError(400, "RepeatedListParameter", f"Repeated query parameter in a list request: `{name}`")
    prefix = query.get("prefix", [""])[0]
    if not prefix:
        raise ApiError(400, "ListWithoutPrefix", "List requests must be scoped to a prefix inside a table location")
    return prefix


def parse_deleted_keys(body: str) -> list[str]:
    """Return the keys of a DeleteObjects request. Raises 400 if the body cannot be read."""
    if "<!DOCTYPE" in body:
        raise ApiError(400, "InvalidDeleteBody", "The XML body of a DeleteObjects request has no document type.")
    try:
        root = ElementTree.fromstring(body)  # noqa: S314  document types, which attacks need, are refused above
    except ElementTree.ParseError as error:
        raise ApiError(400, "InvalidDeleteBody", f"The body is not XML: {error}.") from None
    keys = [element.text or "" for element in root.iter() if element.tag.rpartition("}")[2] == "Key"]
    if not keys:
        raise ApiError(400, "InvalidDeleteBody", "The body of the DeleteObjects request names no key.")
    return keys
