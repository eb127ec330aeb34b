"""DeleteObjects: authorize each object separately; refused objects become errors in the response."""

from collections.abc import Callable
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from lakewright_sandbox.aws.errors import AwsError

_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_CLOSING = b"</DeleteResult>"


class DeleteObjects:
    """A request body, split into allowed and refused objects."""

    def __init__(self, body: bytes, refusal: Callable[[str, str], str | None]) -> None:
        """Parse the body.

        Args:
            body: XML of the request.
            refusal: Called with an action and a key; returns why the object may not be deleted, None if it may.

        Raises:
            AwsError: The body is not well-formed.
        """
        if b"<!DOCTYPE" in body:
            raise AwsError("MalformedXML", "The XML you provided was not well-formed.")
        try:
            self._root = ElementTree.fromstring(body)  # noqa: S314 - without a DOCTYPE there are no entities to expand
        except ElementTree.ParseError:
            raise AwsError("MalformedXML", "The XML you provided was not well-formed.") from None
        self._errors: list[str] = []
        for item in [element for element in self._root if _name(element) == "Object"]:
            parts = {_name(child): child.text or "" for child in item}
            key, version = parts.get("Key", ""), parts.get("VersionId")
            message = refusal("s3:DeleteObject" if version is None else "s3:DeleteObjectVersion", key)
            if message is not None:
                self._root.remove(item)
                version_element = f"<VersionId>{escape(version)}</VersionId>" if version is not None else ""
                self._errors.append(
                    f"<Error><Key>{escape(key)}</Key>{version_element}<Code>AccessDenied</Code>"
                    f"<Message>{escape(message)}</Message></Error>"
                )

    @property
    def nothing_left(self) -> bool:
        """Return whether all objects were refused."""
        return bool(self._errors) and not any(_name(element) == "Object" for element in self._root)

    def build_allowed_body(self) -> bytes:
        """Return the request body with the allowed objects alone."""
        ElementTree.register_namespace("", _NAMESPACE)
        return ElementTree.tostring(self._root, xml_declaration=True, encoding="utf-8")

    def merge_response(self, body: bytes | None = None) -> bytes:
        """Return the response of the allowed part, None if there was none, with the refused objects added."""
        errors = "".join(self._errors).encode()
        if body is None or _CLOSING not in body:
            start = f'<?xml version="1.0" encoding="UTF-8"?>\n<DeleteResult xmlns="{_NAMESPACE}">'
            return start.encode() + errors + _CLOSING
        return body.replace(_CLOSING, errors + _CLOSING)


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]
