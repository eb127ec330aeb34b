"""Files that a program writes before it declares a tenant: secrets of clients in a sandbox, certificates of stores."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from lakewright_spark.catalog.auth import ClientCredentialsAuth

from lakewright.credentials.aws_session import write_certificate_file
from lakewright.environment.environment import Environment
from lakewright.kubernetes.settings import CaBundle
from lakewright.names.object_names import fill_placeholders


def provide_client(environment: Environment, tenant: str) -> None:
    """Make the secret of a tenant's client, if the environment is a sandbox that requires tokens and it is missing."""
    auth = environment.lakekeeper.jobs_auth
    if environment.sandbox is None or not isinstance(auth, ClientCredentialsAuth):
        return
    scheme, _, path = fill_placeholders(auth.client_secret, tenant).partition(":")
    file = Path(path)
    if scheme != "file" or not file.is_relative_to(environment.sandbox) or file.exists():
        return
    # A complete file takes its name at once, so that no reader finds a part of the secret.
    draft = file.with_name(f".{file.name}-{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(secrets.token_hex(32))
    try:
        file.hardlink_to(draft)
    except FileExistsError:
        pass  # another command made it
    finally:
        draft.unlink()


def trust_stores(environment: Environment, certificates: Sequence[str | None]) -> Environment:
    """Return the environment with the authorities of stores in the file that pods trust.

    A ConfigMap or Secret of the platform, and a file of the images, must have them already.

    Args:
        environment: The environment.
        certificates: Certificates of the tenant's stores in PEM; None for a store that every machine trusts.
    """
    authorities = [text for text in dict.fromkeys(certificates) if text]
    bundle = environment.kubernetes.ca_bundle
    is_given = bundle.file is None if bundle else environment.lakekeeper.jobs_ca_bundle is not None
    if not authorities or is_given:
        return environment
    trusted = bundle.file.read_text(encoding="utf-8") if bundle and bundle.file else _public(environment)
    file = write_certificate_file("".join([trusted, *authorities]))
    cluster = environment.kubernetes.model_copy(update={"ca_bundle": CaBundle(file=file)})
    return environment.model_copy(update={"kubernetes": cluster})


def _public(environment: Environment) -> str:
    """Return the public authorities, if the catalog's certificate may be of one of them."""
    import certifi  # noqa: PLC0415 - needed by stores with an authority of their own alone

    return (
        Path(certifi.where()).read_text(encoding="utf-8") if environment.lakekeeper.catalog.startswith("https") else ""
    )
