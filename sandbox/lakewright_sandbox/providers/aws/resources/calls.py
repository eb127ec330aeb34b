"""AWS's errors as sentences: what was being done to what, the code, and what helps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore import exceptions
from botocore.parsers import ResponseParserError

from lakewright_sandbox.providers.protocol.errors import AwsCallError, MaybeCreatedError, SandboxProviderError

_HELP = {
    "AccessDenied": "check that the provider's identity may do this",
    "AccessDeniedException": "check that the provider's identity may do this",
    "BucketAlreadyExists": "bucket names are global: choose another",
    "BucketAlreadyOwnedByYou": "it exists outside this stack: import it (`import_` in the resource's options), or "
    "choose another name",
    "BucketNotEmpty": "empty it first, or set `forceDestroy` and run `up` before destroying",
    "DeleteConflict": "remove what is still attached to it, or set `forceDetachPolicies` and run `up` first",
    "EntityAlreadyExists": "it exists outside this stack: import it (`import_` in the resource's options), or choose "
    "another name",
    "InvalidAccessKeyId": "the provider's keys are not this sandbox's; take them from `lakewright sandbox status`",
    "InvalidClientTokenId": "the provider's keys are not this sandbox's; take them from `lakewright sandbox status`",
    "MalformedPolicy": "correct the policy document",
    "MalformedPolicyDocument": "correct the policy document",
    "NoSuchBucket": "the bucket is gone: run `up --refresh` to make it again",
    "SignatureDoesNotMatch": "the provider's secret key does not belong to its access key",
}
_LOOKED_UP = "it may exist although this failed: the next `up` looks for it"
# A connection came about, but no whole answer; botocore's ConnectionError says that none came about.
_UNANSWERED = (exceptions.HTTPClientError, ResponseParserError)


@contextmanager
def doing(what: str, endpoint: str) -> Iterator[None]:
    """Turn what botocore raises while doing `what` ("creating the bucket x") at an endpoint into a ProviderError."""
    try:
        yield
    except exceptions.ClientError as error:
        code = code_of(error)
        said = error.response.get("Error", {}).get("Message") or "no message"
        advice = f"; {_HELP[code]}" if code in _HELP else ""
        raise AwsCallError(code, f"{what}: AWS at {endpoint} answered {code}: {said.rstrip('.')}{advice}") from error
    except exceptions.NoCredentialsError as error:
        raise SandboxProviderError(
            f"{what}: the aws provider has no credentials; set `accessKey` and `secretKey`, `profile`, or "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        ) from error
    except (*_UNANSWERED, exceptions.ConnectionError) as error:
        raise SandboxProviderError(_unanswered(what, endpoint, error)) from error
    except exceptions.ParamValidationError as error:
        raise SandboxProviderError(
            f"{what}: {str(error).replace(chr(10), ' ')}; correct the resource's properties"
        ) from error


@contextmanager
def making(what: str, endpoint: str) -> Iterator[None]:
    """As `doing`, for the call that makes an object: one that was sent and got no answer may have made it."""
    with doing(what, endpoint):
        try:
            yield
        except _UNANSWERED as error:
            raise MaybeCreatedError(f"{_unanswered(what, endpoint, error)}; {_LOOKED_UP}") from error


@contextmanager
def having_made(what: str, endpoint: str) -> Iterator[None]:
    """As `doing`, for what follows the call that made an object: whatever fails here, the object may be there."""
    try:
        with doing(what, endpoint):
            yield
    except SandboxProviderError as error:
        raise MaybeCreatedError(f"{error}; {_LOOKED_UP}") from error


def _unanswered(what: str, endpoint: str, error: Exception) -> str:
    return (
        f"{what}: no usable answer from {endpoint} ({type(error).__name__}); check that the sandbox is running "
        "(`lakewright sandbox status`)"
    )


@contextmanager
def tolerating(*codes: str) -> Iterator[None]:
    """Let an object that is gone already count as done: these error codes pass."""
    try:
        yield
    except exceptions.ClientError as error:
        if code_of(error) not in codes:
            raise


def code_of(error: exceptions.ClientError) -> str:
    """The error code that AWS answered; for a HEAD request, which has no body, the HTTP status."""
    return error.response.get("Error", {}).get("Code", "Unknown")
