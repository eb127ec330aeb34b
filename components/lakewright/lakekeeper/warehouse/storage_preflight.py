"""Check a warehouse's storage from this machine, for servers that have no dry run."""

# boto3 has no type hints; its results are cast where they are used.
# pyright: reportMissingTypeStubs=false

import uuid
from collections.abc import Callable
from typing import Any, cast

from lakewright_spark.aws_partition import service_host

from lakewright.credentials import references as credentials
from lakewright.credentials.aws_session import write_certificate_file
from lakewright.lakekeeper.preflight.report import Check
from lakewright.lakekeeper.provider import run_context
from lakewright.lakekeeper.storage.credentials import AccessKey
from lakewright.lakekeeper.storage.profiles import S3Profile

TIMEOUT_SECONDS = 10
"""Timeout of a request to the store, in seconds."""

NOT_FOUND = 404

Keys = dict[str, str]


def checks(profile: S3Profile, credential: object, secret: Callable[[str], str], *, new: bool) -> list[Check]:
    """Check role and bucket, with the warehouse's keys if it has them, else without credentials."""
    if not isinstance(credential, AccessKey):
        return [_role_of_the_server(profile), _bucket_from_outside(profile, new=new)]
    try:
        keys = {
            "aws_access_key_id": secret(credential.access_key_id),
            "aws_secret_access_key": secret(credential.secret_access_key),
        }
    except credentials.UnresolvedCredentialError as unresolved:
        return [
            _fail("role", str(unresolved)),
            _fail("bucket", "not checked: its keys cannot be read on this machine"),
        ]
    role, keys = _assume(profile, keys, credential.external_id)
    return [role, _probe(profile, keys) if keys else _fail("bucket", "not checked: the role could not be assumed")]


def _role_of_the_server(profile: S3Profile) -> Check:
    role = next((role for role in profile.roles if role), None)
    if role is None:
        return Check(name="role", status="skipped", reason="no role is declared")
    reason = (
        f"only the server's own identity may assume {role}, and only Lakekeeper 0.14 and newer check it in a dry run"
    )
    return Check(name="role", status="skipped", reason=reason)


def _assume(profile: S3Profile, keys: Keys, external_id: str | None) -> tuple[Check, Keys]:
    """Check that the declared roles can be assumed.

    Return the check and the keys for further checks. There are no keys if a role cannot be assumed.
    """
    catalog_role, vending = profile.roles
    if not catalog_role and not vending:
        return Check(name="role", status="skipped", reason="no role is declared"), keys
    assumed: list[str] = []
    for role in sorted({role for role in profile.roles if role}):
        request = {"RoleArn": role, "RoleSessionName": "lakewright-validate", "DurationSeconds": 900}
        request |= {"ExternalId": external_id} if external_id else {}
        try:
            response = _client("sts", profile, keys).assume_role(**request)["Credentials"]
        except _errors() as error:
            return _fail("role", f"{role} cannot be assumed: {_one_line(error)}. Fix its trust policy."), {}
        if role == catalog_role:
            taken = ("AccessKeyId", "SecretAccessKey", "SessionToken")
            names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
            keys = {name: response[key] for name, key in zip(names, taken, strict=True)}
        assumed.append(role)
    return Check(name="role", status="passed", reason=f"can be assumed: {', '.join(assumed)}"), keys


def _probe(profile: S3Profile, keys: Keys) -> Check:
    """Write, read and delete an object, as the server does before it accepts storage."""
    key = "/".join(part for part in (profile.key_prefix, f"lakewright-validate-{uuid.uuid4()}") if part)
    at = f"s3://{profile.bucket}/{key}"
    s3 = _client("s3", profile, keys)
    doing = "written"
    try:
        s3.put_object(Bucket=profile.bucket, Key=key, Body=b"lakewright")
        doing = "read"
        s3.get_object(Bucket=profile.bucket, Key=key)["Body"].read()
        doing = "deleted"
        s3.delete_object(Bucket=profile.bucket, Key=key)
    except _errors() as error:
        return _fail(
            "bucket",
            f"a probe object at {at} cannot be {doing}: {_one_line(error)}. Check bucket, keys and permissions.",
        )
    return Check(name="bucket", status="passed", reason=f"a probe object was written, read and deleted at {at}")


def _bucket_from_outside(profile: S3Profile, *, new: bool) -> Check:
    """Check whether the bucket exists, as far as the store reports it without credentials."""
    import httpx  # noqa: PLC0415 - slow to load, and needed by `--validate` alone

    endpoint = profile.endpoint or f"https://{service_host('s3', profile.region)}"
    url = f"{endpoint.rstrip('/')}/{profile.bucket}"
    try:
        response = httpx.head(url, timeout=TIMEOUT_SECONDS)
    except httpx.HTTPError as error:
        return _fail(
            "bucket", f"{url} does not respond ({type(error).__name__}). Correct `endpoint`, or start the store."
        )
    region = response.headers.get("x-amz-bucket-region")
    if response.status_code == NOT_FOUND and new:
        return Check(
            name="bucket",
            status="skipped",
            reason=f"{url} does not exist yet; this is expected if the stack creates it",
        )
    if response.status_code == NOT_FOUND:
        return _fail("bucket", f"{url} does not exist. Create the bucket, or correct its name.")
    if profile.is_on_aws and region and region != profile.region:
        return _fail("bucket", f"{profile.bucket} is in {region}, but {profile.region} is declared. Declare {region}.")
    return Check(name="bucket", status="passed", reason=f"{url} responds; permissions are checked when it is used")


def _client(service: str, profile: S3Profile, keys: Keys) -> Any:
    import boto3  # noqa: PLC0415 - slow to load, and needed by `--validate` alone
    from botocore.config import Config  # noqa: PLC0415

    endpoint = (profile.sts_endpoint or profile.endpoint) if service == "sts" else profile.endpoint
    style = {"addressing_style": "path" if profile.path_style_access else "auto"}
    once = {"total_max_attempts": 1}
    certificates = run_context.current().store_certificates.get((profile.endpoint or "").rstrip("/"))
    trusted = {"verify": str(write_certificate_file(certificates))} if certificates else {}
    settings = cast(Any, Config)(connect_timeout=TIMEOUT_SECONDS, read_timeout=TIMEOUT_SECONDS, retries=once, s3=style)
    return cast(Any, boto3).client(
        service, endpoint_url=endpoint, region_name=profile.region, config=settings, **keys, **trusted
    )


def _errors() -> tuple[type[Exception], ...]:
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    return BotoCoreError, ClientError


def _one_line(error: Exception) -> str:
    """Return the store's error code and message, without anything else of the request."""
    response = cast(dict[str, Any], getattr(error, "response", {})).get("Error", {})
    return (
        f"{response['Code']}: {response.get('Message', '')}".rstrip(": .")
        if "Code" in response
        else str(error).rstrip(".")
    )


def _fail(name: str, reason: str) -> Check:
    return Check(name=name, status="failed", reason=reason)
