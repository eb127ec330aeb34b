"""Errors as clients see them, in the formats of S3, of the query services (IAM, STS) and of KMS.

`lakewright_sandbox.errors` draws the tree of exceptions.
"""

import json
import uuid
from xml.sax.saxutils import escape

from lakewright_sandbox.errors import SandboxError

# S3's code and status for errors that have another code in the query services.
_S3_NAMES = {
    "InvalidClientTokenId": ("InvalidAccessKeyId", 403),
    "ExpiredToken": ("ExpiredToken", 400),
    "InvalidToken": ("InvalidToken", 400),
    "MissingAuthenticationToken": ("AccessDenied", 403),
    "IncompleteSignature": ("AuthorizationHeaderMalformed", 400),
}
_QUERY_NAMES = {"InvalidToken": "InvalidClientTokenId", "RequestTimeTooSkewed": "SignatureDoesNotMatch"}


class AwsError(SandboxError):
    """An error response: code, message and HTTP status."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        """Set code, message and HTTP status."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


class AwsAccessDeniedError(AwsError):
    """The identity is known and lacks the permission."""

    def __init__(self, message: str) -> None:
        """Set the message."""
        super().__init__("AccessDenied", message, 403)


def invalid_value(name: str, value: str, expected: str) -> AwsError:
    """Return the error of a parameter that IAM or STS refuses."""
    return AwsError(
        "ValidationError",
        f"1 validation error detected: Value '{value}' at '{name}' failed to satisfy constraint: "
        f"Member must satisfy {expected}",
    )


def s3_error(error: AwsError, resource: str) -> tuple[int, str]:
    """Return status and body of an error in S3's format."""
    code, status = _S3_NAMES.get(error.code, (error.code, error.status))
    return status, (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<Error><Code>{code}</Code><Message>{escape(error.message)}</Message><Resource>{escape(resource)}</Resource>"
        f"<RequestId>{uuid.uuid4()}</RequestId></Error>"
    )


def query_error(error: AwsError, namespace: str) -> tuple[int, str]:
    """Return status and body of an error in the format of IAM and STS."""
    code = _QUERY_NAMES.get(error.code, error.code)
    return error.status, (
        f'<ErrorResponse xmlns="{namespace}"><Error><Type>Sender</Type><Code>{code}</Code>'
        f"<Message>{escape(error.message)}</Message></Error><RequestId>{uuid.uuid4()}</RequestId></ErrorResponse>"
    )


def json_error(error: AwsError) -> tuple[int, str]:
    """Return status and body of an error in KMS's format."""
    code = "AccessDeniedException" if error.code == "AccessDenied" else error.code
    return 400, json.dumps({"__type": code, "message": error.message})
