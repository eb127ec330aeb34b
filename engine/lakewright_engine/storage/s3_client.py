"""boto3 clients for buckets of backends, with the default credential chain of AWS."""

# boto3 has no types; its results are cast where they are used.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import os
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, cast

from lakewright_engine.model.errors import UnsupportedFeatureError
from lakewright_engine.storage.s3_errors import explain_errors
from lakewright_engine.storage.s3_location import BucketLocation

_ATTEMPTS = 6
_CONNECT_SECONDS = 10
_READ_SECONDS = 60
_CONNECTIONS = 32


def require_boto3(url: str) -> None:
    """Raise UnsupportedFeatureError if boto3 is not installed."""
    if find_spec("boto3") is None:
        raise UnsupportedFeatureError(
            f"the backend {url} needs boto3: install lakewright-engine[s3], or use --engine pulumi"
        )


def s3_client(location: BucketLocation, url: str) -> Any:
    """Return the client for a bucket. It is thread-safe.

    Args:
        location: The bucket.
        url: The URL of the backend, for errors.

    Raises:
        StateAccessError: There are no credentials.
    """
    with explain_errors(location, "Access", url):
        return _client(location, tuple(sorted(item for item in os.environ.items() if item[0].startswith("AWS_"))))


@lru_cache(maxsize=4)
def _client(location: BucketLocation, _environment: tuple[tuple[str, str], ...]) -> Any:
    """Make a client, once for each location and AWS environment: loading the service takes a fifth of a second."""
    import boto3  # noqa: PLC0415 - slow to load
    from botocore import UNSIGNED  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415
    from botocore.session import Session  # noqa: PLC0415

    base = cast("Any", Session(profile=location.profile or None))
    configured = base.get_config_variable("region")
    region = str(location.region or os.environ.get("AWS_REGION") or configured or "us-east-1")
    session = cast("Any", boto3).Session(botocore_session=base, region_name=region)
    if location.role_arn:
        session = _assume_role(session, location.role_arn, region)
    style = "path" if location.has_path_style else "auto"
    options: dict[str, Any] = {
        "connect_timeout": _CONNECT_SECONDS,
        "read_timeout": _READ_SECONDS,
        "max_pool_connections": _CONNECTIONS,
        "s3": {"addressing_style": style, "use_accelerate_endpoint": location.is_accelerated},
    }
    if not os.environ.get("AWS_MAX_ATTEMPTS"):
        options["retries"] = {"mode": "standard", "total_max_attempts": _ATTEMPTS}
    if location.is_anonymous:
        options["signature_version"] = UNSIGNED
    if location.request_checksums:
        options["request_checksum_calculation"] = location.request_checksums
    if location.response_checksums:
        options["response_checksum_validation"] = location.response_checksums
    if location.uses_dualstack:
        options["use_dualstack_endpoint"] = True
    if location.uses_fips:
        options["use_fips_endpoint"] = True
    return session.client(
        "s3", endpoint_url=location.endpoint or None, use_ssl=not location.uses_http, config=Config(**options)
    )


def _assume_role(session: Any, role_arn: str, region: str) -> Any:
    """Return a session with the credentials of a role, renewed before they expire."""
    import boto3  # noqa: PLC0415
    from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials  # noqa: PLC0415
    from botocore.session import Session  # noqa: PLC0415

    botocore_session: Any = session._session
    fetcher: Any = AssumeRoleCredentialFetcher(
        botocore_session.create_client, botocore_session.get_credentials(), role_arn
    )
    base: Any = Session()
    base._credentials = DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")
    return cast("Any", boto3).Session(botocore_session=base, region_name=region)
