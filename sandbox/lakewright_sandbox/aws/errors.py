"""Errors that a client sees, in the shapes of S3, of the query services (IAM, STS) and of KMS.

AwsError
├── AccessDeniedError
└── InvalidTokenError, ExpiredTokenError, ...   by code, see `_S3_NAMES`
"""

import json
import uuid
from xml.sax.saxutils import escape

# What the query services call by one name, S3 calls by another, at times with another status.
_S3_NAMES = {
    "InvalidClientTokenId": ("InvalidAccessKeyId", 403),
    "ExpiredToken": ("ExpiredToken", 400),
    "InvalidToken": ("InvalidToken", 400),
    "MissingAuthenticationToken": ("AccessDenied", 403),
    "IncompleteSignature": ("AuthorizationHeaderMalformed", 400),
}
_QUERY_NAMES = {"InvalidToken": "InvalidClientTokenId", "RequestTimeTooSkewed": "SignatureDoesNotMatch"}


class AwsError(Exception):
    """An answer that is an error: code, message and HTTP status."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


class AwsAccessDeniedError(AwsError):
    """The identity is known and may not do this."""

    def __init__(self, message: str) -> None:
        super().__init__("AccessDenied", message, 403)


def s3_error(error: AwsError, resource: str) -> tuple[int, str]:
    """Status and body as S3 answers."""
    code, status = _S3_NAMES.get(error.code, (error.code, error.status))
    return status, (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<Error><Code>{code}</Code><Message>{escape(error.message)}</Message><Resource>{escape(resource)}</Resource>"
        f"<RequestId>{uuid.uuid4()}</RequestId></Error>"
    )


def query_error(error: AwsError, namespace: str) -> tuple[int, str]:
    """Status and body as IAM and STS answer."""
    code = _QUERY_NAMES.get(error.code, error.code)
    return error.status, (
        f'<ErrorResponse xmlns="{namespace}"><Error><Type>Sender</Type><Code>{code}</Code>'
        f"<Message>{escape(error.message)}</Message></Error><RequestId>{uuid.uuid4()}</RequestId></ErrorResponse>"
    )


def json_error(error: AwsError) -> tuple[int, str]:
    """Status and body as KMS answers."""
    code = "AccessDeniedException" if error.code == "AccessDenied" else error.code
    return 400, json.dumps({"__type": code, "message": error.message})
