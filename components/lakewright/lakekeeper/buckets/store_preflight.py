"""Check that a stack reaches its S3-compatible stores, before it makes anything: address, certificate, key, bucket."""

# boto3 has no types; its results are cast where they are used.
# pyright: reportMissingTypeStubs=false

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Self, cast
from urllib.parse import urlsplit

from lakewright.credentials.references import Reference, UnresolvedCredentialError
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket, open_client, read_code
from lakewright.lakekeeper.provider.diagnostics import warn
from lakewright.lakekeeper.provider.errors import BucketRefusedError
from lakewright.names.host_kinds import HostKind, is_loopback, kind_of_host

_NO_BUCKET = "NoSuchBucket"
"""Error code of a store. Any other service responds 404 without this code."""
_WRONG_KEY_ID = frozenset({"InvalidAccessKeyId", "InvalidClientTokenId", "InvalidTokenId"})
_DENIED = frozenset({"AccessDenied", "403", "Forbidden"})


class RecordedStore(OwnBucket):
    """A bucket in an S3-compatible store."""

    is_made: bool = False
    """Whether the stack makes the bucket."""
    server_access_key_id: Reference | None = None
    """Reference to the id of the key that Lakekeeper uses, if it is not that of the stack."""
    server_secret_access_key: Reference | None = None
    """Reference to the secret of that key."""

    @property
    def of_server(self) -> Self | None:
        """The bucket as Lakekeeper reaches it, if it has a key of its own."""
        if self.server_access_key_id is None:
            return None
        keys = {"access_key_id": self.server_access_key_id, "secret_access_key": self.server_secret_access_key}
        return self.model_copy(update=keys)


def certificates(stores: Mapping[str, RecordedStore]) -> dict[str, str]:
    """Return the certificate authorities of stores, by endpoint."""
    return {store.endpoint or "": store.ca_certificates for store in stores.values() if store.ca_certificates}


def check(
    stores: Mapping[str, RecordedStore],
    before: Mapping[str, RecordedStore],
    key_prefixes: Mapping[str, Sequence[str]],
    in_use: Collection[str] = (),
) -> None:
    """Raise if the stack does not reach a store, or a bucket that must exist. Check new and changed storages only.

    Args:
        stores: Buckets of the spec, by name of the storage.
        before: Buckets of the state, by name of the storage.
        key_prefixes: Key prefixes of warehouses, by bucket.
        in_use: Buckets that warehouses use and the state does not describe. Stacks of earlier versions did not access
            them, and may be unable to.

    Raises:
        BucketRefusedError: A storage is not usable. The message names its field in the spec.
    """
    for name, store in stores.items():
        earlier = before.get(name)
        if earlier is None and store.bucket in in_use and not store.is_made:
            continue
        if earlier is None or earlier.props() != store.props():
            prefixes, server = key_prefixes.get(store.bucket, ()), store.of_server
            _check(f"storage.{name}", "admin_credential" if server else "credential", store, prefixes)
            if server:
                _check(f"storage.{name}", "credential", server, prefixes)


def _check(path: str, field: str, store: RecordedStore, key_prefixes: Sequence[str]) -> None:
    from botocore.exceptions import (  # noqa: PLC0415 - slow to load
        BotoCoreError,
        ClientError,
        ConnectionError,  # noqa: A004 - botocore's own
        HTTPClientError,
        SSLError,
    )
    from botocore.parsers import ResponseParserError  # noqa: PLC0415

    try:
        s3 = open_client(store)
    except UnresolvedCredentialError as unresolved:
        warn(f"{path}: {unresolved}; could not check {store.where}")
        return
    try:
        # With a key that reaches the prefix of its warehouse alone, only that prefix can be listed.
        for prefix in key_prefixes or [""]:
            s3.list_objects_v2(Bucket=store.bucket, Prefix=f"{prefix}/" if prefix else "", MaxKeys=1)
    except ClientError as error:
        if reason := _refusal(path, field, store, error):
            raise BucketRefusedError(reason) from None
    except SSLError as error:
        raise BucketRefusedError(
            f"{path}.endpoint: the certificate of {store.endpoint} is not trusted: {_reason(error)}. Put the"
            f" certificates of its authority into `{path}.ca_certificates`."
        ) from None
    except (ConnectionError, HTTPClientError) as error:
        if _is_in_cluster(store):
            warn(f"{path}: could not check {store.where}, which does not respond to this machine: {_reason(error)}")
            return
        raise BucketRefusedError(
            f"{path}.endpoint: expected a store at {store.endpoint}; it does not respond: {_reason(error)}. Correct the"
            " address, or start the store."
        ) from None
    except ResponseParserError:
        raise BucketRefusedError(
            f"{path}.endpoint: expected an S3-compatible store at {store.endpoint}; its response is not one of S3."
            " Correct the address."
        ) from None
    except BotoCoreError as error:
        raise BucketRefusedError(f"{path}: {store.where} cannot be listed: {_reason(error)}.") from None


def _refusal(path: str, field: str, store: RecordedStore, error: Exception) -> str | None:
    """Return what a store's refusal means for the spec; None if the bucket will be made."""
    code = read_code(error)
    if code == _NO_BUCKET:
        if store.is_made:
            return None
        return (
            f"{path}.bucket: expected the bucket `{store.bucket}` at {store.endpoint}; there is none. Make it, correct"
            " its name, or let the stack make it with `create: true`."
        )
    if code in _WRONG_KEY_ID:
        return (
            f"{path}.{field}: {store.endpoint} does not know the access key in `{store.access_key_id}` ({code})."
            " Correct that secret."
        )
    if code == "SignatureDoesNotMatch":
        return (
            f"{path}.{field}: {store.endpoint} does not accept the secret key in `{store.secret_access_key}`"
            f" ({code}). Correct that secret."
        )
    if code in _DENIED:
        return (
            f"{path}.{field}: the access key in `{store.access_key_id}` may not list the bucket `{store.bucket}` at"
            f" {store.endpoint} ({code}). Allow that under the key prefixes of its warehouses, or name another key."
        )
    status = cast(Any, error).response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return (
        f"{path}: {store.where} cannot be listed: the store responded {code} (HTTP {status}). Check `endpoint`,"
        f" `region` and `path_style`."
    )


def _is_in_cluster(store: RecordedStore) -> bool:
    """Return whether only pods may reach a store. The stack needs the buckets that it makes."""
    host = urlsplit(store.endpoint or "").hostname or ""
    is_inside = kind_of_host(host) in {HostKind.INTERNAL, HostKind.SHORT_NAME} and not is_loopback(host)
    return is_inside and not store.is_made


def _reason(error: Exception) -> str:
    """Return the reason of an error in one line, without the request."""
    inner = cast(Any, error).kwargs.get("error") if hasattr(error, "kwargs") else None
    return " ".join(str(inner or error).split()).rstrip(".")
