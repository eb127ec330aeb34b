"""Parse the body of S3's DeleteObjects request."""

from __future__ import annotations

from xml.etree import ElementTree

from lakewright_sandbox.lakekeeper.protocol.errors import ApiError


def parse_deleted_keys(body: str) -> list[str]:
    """Return the keys. Raises 400 for a body that cannot be read, since it limits the request."""
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
