"""OAuth2 clients of tenants in a sandbox, whose identity provider reads their secrets from files."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from lakewright_spark.catalog.auth import ClientCredentialsAuth

from lakewright.environment.environment import Environment
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
