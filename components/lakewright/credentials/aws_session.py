"""Clients of AWS and S3: sessions with the identity of the `aws` provider, and files of certificates."""

# boto3 has no types; values are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import hashlib
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, cast

_PRELOADED_SERVICES = ("s3", "iam", "kms", "sts")


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
    loader = _get_loader(base.get_config_variable("data_path"))
    base.register_component("data_loader", loader)
    session = cast(Any, boto3).Session(botocore_session=base, region_name=region)
    loader.search_paths[:] = dict.fromkeys(loader.search_paths)  # each session of boto3 adds its own folder
    return session


@cache
def preload_service_models() -> None:
    """Load the descriptions of the AWS services that most commands call, for this process and its forks."""
    session = open_aws_session(None, "us-east-1", None)
    for service in _PRELOADED_SERVICES:
        session.client(service, aws_access_key_id="none", aws_secret_access_key="none")  # noqa: S106 - makes no call


@cache
def _get_loader(data_path: str | None) -> Any:
    """Return the loader of service descriptions. Each session would load them again, for a fifth of a second."""
    from botocore import loaders  # noqa: PLC0415 - slow to load

    return cast(Any, loaders).create_loader(data_path)


def write_certificate_file(certificates: str) -> Path:
    """Write certificates in PEM to a file of the user's cache, and return its path. The content decides its name."""
    # In a folder that other users may write to, they could change the authorities that the stack trusts.
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lakewright"
    file = folder / f"ca-{hashlib.sha256(certificates.encode()).hexdigest()[:32]}.pem"
    if not file.is_file():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, new = tempfile.mkstemp(dir=folder)
        with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
            opened.write(certificates)
        Path(new).replace(file)
    return file
