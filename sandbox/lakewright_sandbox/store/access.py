"""Keys of a sandbox's store, and whether the store accepts them."""

import os
from typing import Any

from pydantic import SecretStr

from lakewright_sandbox.errors import SandboxOptionsError
from lakewright_sandbox.runtime.credentials import IamAccessKey, new_access_key, write_private
from lakewright_sandbox.runtime.state import Layout
from lakewright_sandbox.typed.boto import BotoCoreError, ClientError, Config, botocore_session, error_detail

KEY_VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
"""Environment variables with the keys of a running store. They are no options: other users can see a command line."""

_ACCEPTED = frozenset({"AccessDenied"})
"""Error code of a store for a valid key that may not list all buckets."""


def load_or_create_keys(layout: Layout) -> IamAccessKey:
    """Return the keys of the sandbox's own MinIO; make them if there are none."""
    try:
        return load_keys(layout)
    except FileNotFoundError:
        return save_keys(layout, new_access_key())


def keys_from_environment(layout: Layout) -> IamAccessKey:
    """Return the keys of a running store from the environment, else the keys of the last start.

    Raises:
        SandboxOptionsError: There are none.
    """
    key_id, secret = (os.environ.get(name) for name in KEY_VARIABLES)
    if key_id and secret:
        return IamAccessKey(access_key_id=key_id, secret_access_key=SecretStr(secret))
    try:
        return load_keys(layout)
    except FileNotFoundError:
        raise SandboxOptionsError(
            f"`--s3 URL` needs the keys of the store: set {' and '.join(KEY_VARIABLES)}."
        ) from None


def load_keys(layout: Layout) -> IamAccessKey:
    """Return the saved keys. Raises FileNotFoundError."""
    return IamAccessKey(
        access_key_id=layout.store_key_id.read_text().strip(),
        secret_access_key=SecretStr(layout.store_secret.read_text().strip()),
    )


def require_access(endpoint: str, region: str, keys: IamAccessKey) -> None:
    """Raise SandboxOptionsError if a store does not respond, or does not accept the keys."""
    client: Any = botocore_session().create_client(
        "s3",
        region_name=region,
        endpoint_url=endpoint,
        aws_access_key_id=keys.access_key_id,
        aws_secret_access_key=keys.secret_access_key.get_secret_value(),
        config=Config(connect_timeout=5, retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
    )
    try:
        client.list_buckets()
    except ClientError as error:
        code = str(error_detail(error).get("Code", ""))
        if code not in _ACCEPTED:
            raise SandboxOptionsError(
                f"The store at {endpoint} responded {code}. Correct {' and '.join(KEY_VARIABLES)}, or the address."
            ) from None
    except BotoCoreError as error:
        reason = " ".join(str(error).split())
        raise SandboxOptionsError(f"The store at {endpoint} does not respond: {reason}. Correct `--s3`.") from None


def save_keys(layout: Layout, keys: IamAccessKey) -> IamAccessKey:
    """Save keys in files that their owner alone may read."""
    layout.store.mkdir(mode=0o700, exist_ok=True)
    write_private(layout.store_key_id, keys.access_key_id.encode())
    write_private(layout.store_secret, keys.secret_access_key.get_secret_value().encode())
    return keys
