"""Explain errors of S3: what failed, where, and what to do."""

# boto3 has no types; its results are cast where they are used.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from lakewright_engine.model.errors import StateAccessError
from lakewright_engine.storage.s3_location import BucketLocation

_DENIED = ("AccessDenied", "403", "Forbidden", "AllAccessDisabled", "AccountProblem")
_REFUSED_CREDENTIALS = (
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidToken",
    "InvalidClientTokenId",
    "TokenRefreshRequired",
    "RequestTimeTooSkewed",
)
_OTHER_REGION = ("PermanentRedirect", "301", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException")
_NO_CREDENTIALS = ("NoCredentialsError", "PartialCredentialsError", "ProfileNotFound", "CredentialRetrievalError")


def find_error_code(error: Exception) -> str:
    """Return the error code of a response of S3; empty for other errors."""
    response: Any = getattr(error, "response", None)
    return str(cast("dict[str, Any]", response).get("Error", {}).get("Code", "")) if response else ""


@contextmanager
def explain_errors(location: BucketLocation, action: str, url: str) -> Generator[None]:
    """Turn errors of S3 into StateAccessError.

    Args:
        location: The bucket.
        action: The action that a policy must allow, such as `s3:PutObject`.
        url: The URL of the object or prefix.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to load

    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise StateAccessError(f"{action} on {url} failed: {_reason(error, location, action)}") from error


def _reason(error: Exception, location: BucketLocation, action: str) -> str:
    code, bucket = find_error_code(error), location.bucket
    if code == "NoSuchBucket":
        return f"the bucket '{bucket}' does not exist at {location.server}; create it, or correct the backend URL"
    if code in _DENIED:
        return (
            f"the bucket '{bucket}' denies {action} to the AWS identity in use; allow it on "
            f"{_resource(location, action)}, or choose another identity with AWS_PROFILE or ?profile="
        )
    if code in _REFUSED_CREDENTIALS:
        return f"{location.server} refuses the AWS credentials ({code}); renew them"
    if code in _OTHER_REGION:
        return f"the bucket '{bucket}' is in another region; name it in the backend URL with ?region="
    return _response(error, location) if code else _no_response(error, location)


def _response(error: Exception, location: BucketLocation) -> str:
    message = str(getattr(error, "response", {}).get("Error", {}).get("Message", ""))
    return f"{location.server} responds with {find_error_code(error)}: {message}".rstrip(": ")


def _no_response(error: Exception, location: BucketLocation) -> str:
    name = type(error).__name__
    if name in _NO_CREDENTIALS or "Token" in name or "SSO" in name:
        return f"no AWS credentials: {error}; set AWS_PROFILE, AWS_ACCESS_KEY_ID, or ?profile= in the backend URL"
    return f"{location.server} does not respond as expected: {error}"


def _resource(location: BucketLocation, action: str) -> str:
    arn = f"arn:aws:s3:::{location.bucket}"
    return arn if action == "s3:ListBucket" else f"{arn}/{location.prefix}.pulumi/*"
