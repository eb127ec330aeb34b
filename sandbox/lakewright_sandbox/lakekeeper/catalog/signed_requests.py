"""What a request that is to be signed would touch, and which requests are signed at all."""

from __future__ import annotations

from urllib.parse import parse_qs, unquote, urlsplit

from ..errors import ApiError
from ..requests import Body
from ..storage import WarehouseStorage
from .delete_objects import deleted_keys

COPY_SOURCE = "x-amz-copy-source"

# A parameter can make another operation of a request (`?policy`, `?acl`), so only these pass.
OF_A_LISTING = {
    *("prefix", "list-type", "delimiter", "max-keys", "continuation-token", "start-after", "marker"),
    *("encoding-type", "fetch-owner", "x-id"),
}
OF_AN_OBJECT = {
    *("partnumber", "uploadid", "uploads", "versionid", "x-id", "max-parts", "part-number-marker", COPY_SOURCE),
    *("response-cache-control", "response-content-disposition", "response-content-encoding"),
    *("response-content-language", "response-content-type", "response-expires"),
}


class SignRequest(Body):
    region: str
    uri: str
    method: str
    headers: dict[str, list[str]]
    body: str | None = None


def copied(request: SignRequest) -> list[str]:
    """The `s3://` URIs that a request copies from; S3 takes them as `bucket/key`, encoded, with or without a slash."""
    named = [*request.headers.items(), *parse_qs(urlsplit(request.uri).query, keep_blank_values=True).items()]
    sources = [value for name, values in named if name.lower() == COPY_SOURCE for value in values]
    return [f"s3://{unquote(source.partition('?')[0]).removeprefix('/')}" for source in sources]


def requested(storage: WarehouseStorage, request: SignRequest, *, listings: bool) -> list[str]:
    """The `s3://` URIs that a request touches: its object, the prefix it lists, or the objects it deletes.

    Without `listings` a request needs a key, as with released servers.
    """
    parts = urlsplit(request.uri)
    bucket, path = storage.profile.bucket, unquote(parts.path).lstrip("/")
    host_is_bucket = (parts.hostname or "").startswith(f"{bucket}.")
    style = storage.profile.remote_signing_url_style
    if style == "virtual_host" or (style == "auto" and host_is_bucket):
        key = path
    else:
        found, _, key = path.partition("/")
        if found != bucket:
            message = f"Cannot sign a request for bucket `{found}`: the warehouse's bucket is `{bucket}`."
            raise ApiError(403, "SignRequestOutsideLocation", message)
    query, method = parse_qs(parts.query, keep_blank_values=True), request.method.upper()
    names = {name.lower() for name in query}
    if key and names <= OF_AN_OBJECT:
        return [f"s3://{bucket}/{key}"]
    if not key and method == "POST" and names <= {"delete", "x-id"} and "delete" in query:
        return [f"s3://{bucket}/{one}" for one in deleted_keys(request.body)]
    if not key and method == "GET" and not listings:
        raise ApiError(400, "UriNotS3", "URI does not match S3 host or path style")
    if not key and method == "GET" and names <= OF_A_LISTING and len(query.get("prefix", ())) == 1:
        return [f"s3://{bucket}/{query['prefix'][0]}"]
    asked = f"{method} of {f'`{key}`' if key else f'the whole bucket `{bucket}`'}"
    with_query = f" with {', '.join(f'`{name}`' for name in sorted(names))}" if names else ""
    raise ApiError(403, "SignRequestOutsideLocation", f"Cannot sign {asked}{with_query}.")
