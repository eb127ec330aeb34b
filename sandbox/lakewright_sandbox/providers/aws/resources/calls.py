"""Turn AWS's errors into messages: the operation, the endpoint, the error code and what to do."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from lakewright_sandbox.providers.protocol.errors import AwsCallError, MaybeCreatedError, SandboxProviderError
from lakewright_sandbox.typed import boto

_REFUSED_TAG = (
    "change the label or the tag (`labels` of the spec, `aws.tags` of the environment), or have the policy of the "
    "organization changed; `lakewright doctor --stack STACK` compares all tags"
)
_HELP = {
    "AccessDenied": "check that the provider's identity may do this",
    "AccessDeniedException": "check that the provider's identity may do this",
    "BucketAlreadyExists": "bucket names are global: choose another",
    "BucketAlreadyOwnedByYou": "it exists outside this stack: import it (`import_` in the resource's options), or "
    "choose another name",
    "BucketNotEmpty": "empty it first, or set `forceDestroy` and run `up` before destroying",
    "DeleteConflict": "detach its policies, or set `forceDetachPolicies` and run `up` first",
    "EntityAlreadyExists": "it exists outside this stack: import it (`import_` in the resource's options), or choose "
    "another name",
    "InvalidAccessKeyId": "the provider's keys are not this sandbox's; take them from `lakewright sandbox status`",
    "InvalidClientTokenId": "the provider's keys are not this sandbox's; take them from `lakewright sandbox status`",
    "MalformedPolicy": "correct the policy document",
    "MalformedPolicyDocument": "correct the policy document",
    "NoSuchBucket": "the bucket no longer exists: run `up --refresh` to make it again",
    "TagException": _REFUSED_TAG,
    "TagPolicyException": _REFUSED_TAG,
    "SignatureDoesNotMatch": "the provider's secret key does not belong to its access key",
}
_LOOKUP_HINT = "it may exist although this failed: the next `up` looks for it"
# The connection succeeded but the response is incomplete; botocore's ConnectionError means it failed.
_WITHOUT_RESPONSE = (boto.HTTPClientError, boto.ResponseParserError)


@contextmanager
def describe_errors(action: str, endpoint: str) -> Generator[None, None, None]:
    """Raise botocore's errors as SandboxProviderError.

    Args:
        action: The operation, such as "creating the bucket x".
        endpoint: The endpoint that was called.
    """
    try:
        yield
    except boto.ClientError as error:
        code = boto.error_code(error)
        detail = str(boto.error_detail(error).get("Message") or "no message")
        advice = f"; {_HELP[code]}" if code in _HELP else ""
        raise AwsCallError(
            code, f"{action}: AWS at {endpoint} responded with {code}: {detail.rstrip('.')}{advice}"
        ) from error
    except boto.NoCredentialsError as error:
        raise SandboxProviderError(
            f"{action}: the aws provider has no credentials; set `accessKey` and `secretKey`, `profile`, or "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        ) from error
    except (*_WITHOUT_RESPONSE, boto.BotoConnectionError) as error:
        raise SandboxProviderError(_describe_missing_response(action, endpoint, error)) from error
    except boto.ParamValidationError as error:
        raise SandboxProviderError(
            f"{action}: {str(error).replace(chr(10), ' ')}; correct the resource's properties"
        ) from error


@contextmanager
def mark_create(action: str, endpoint: str) -> Generator[None, None, None]:
    """Raise errors as `describe_errors` does; a sent create without response raises MaybeCreatedError."""
    with describe_errors(action, endpoint):
        try:
            yield
        except _WITHOUT_RESPONSE as error:
            raise MaybeCreatedError(f"{_describe_missing_response(action, endpoint, error)}; {_LOOKUP_HINT}") from error


@contextmanager
def mark_after_create(action: str, endpoint: str) -> Generator[None, None, None]:
    """Raise errors of calls that follow a create as MaybeCreatedError: the object may exist."""
    try:
        with describe_errors(action, endpoint):
            yield
    except SandboxProviderError as error:
        raise MaybeCreatedError(f"{error}; {_LOOKUP_HINT}") from error


def _describe_missing_response(action: str, endpoint: str, error: Exception) -> str:
    return (
        f"{action}: no usable response from {endpoint} ({type(error).__name__}); check that the sandbox is running "
        "(`lakewright sandbox status`)"
    )


@contextmanager
def ignore_codes(*codes: str) -> Generator[None, None, None]:
    """Ignore these error codes, such as the codes of a deleted object."""
    try:
        yield
    except boto.ClientError as error:
        if boto.error_code(error) not in codes:
            raise
