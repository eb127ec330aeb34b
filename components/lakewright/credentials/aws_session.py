"""boto3 sessions with the identity of the stack's `aws` provider."""

# boto3 has no types; values are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from pathlib import Path
from typing import Any, cast


def open_aws_session(profile: str | None, region: str | None, shared_credentials_file: Path | str | None) -> Any:
    """Return a boto3 session as the `aws` provider makes it.

    Raises:
        botocore.exceptions.ProfileNotFound: There is no such profile.
    """
    import boto3  # noqa: PLC0415 - slow to load
    from botocore.session import Session  # noqa: PLC0415

    base = cast(Any, Session)(profile=profile)
    if shared_credentials_file is not None:
        base.set_config_variable("credentials_file", str(shared_credentials_file))
    return cast(Any, boto3).Session(botocore_session=base, region_name=region)
