"""The AWS identity that a stack works with, for calls of our own beside those of the `aws` provider."""

# boto3 carries no types; what comes of it is cast where it is used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from pathlib import Path
from typing import Any, cast


def aws_session(profile: str | None, region: str | None, shared_credentials_file: Path | str | None) -> Any:
    """A boto3 session as the `aws` provider would make it. Raises botocore's ProfileNotFound."""
    import boto3  # noqa: PLC0415 - slow to load
    from botocore.session import Session  # noqa: PLC0415

    base = cast(Any, Session)(profile=profile)
    if shared_credentials_file is not None:
        base.set_config_variable("credentials_file", str(shared_credentials_file))
    return cast(Any, boto3).Session(botocore_session=base, region_name=region)
