"""Access delegation to a table's files: vended credentials, remote signing, or neither."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Request

from lakewright_sandbox.lakekeeper.database.lookups import SEPARATOR
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper
from lakewright_sandbox.lakekeeper.storage.access import AnyStorage, WarehouseStorage

KEY_FIELDS = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token")


@dataclass(frozen=True)
class Delegation:
    """The methods that the client requested; without any the server chooses."""

    vended: bool
    signing: bool
    managed: bool

    def methods(self, *, vending: bool, signing: bool) -> tuple[bool, bool]:
        """Return whether to vend and whether to sign, limited by the settings of the warehouse."""
        if self.managed and not (self.vended or self.signing):
            return False, False
        vend, sign = self.vended and vending, self.signing and signing
        if not (vend or sign):
            vend, sign = vending, signing and not vending
        return vend, sign


async def read_delegation(request: Request) -> Delegation:
    """Return the delegation that the request's header names."""
    values = ",".join(request.headers.getlist("x-iceberg-access-delegation")).split(",")
    modes = {value.strip().lower() for value in values}
    return Delegation("vended-credentials" in modes, "remote-signing" in modes, "client-managed" in modes)


AccessDelegation = Annotated[Delegation, Depends(read_delegation)]


@dataclass(frozen=True)
class TabularAccess:
    """Access of a client to one table or view: what it may do, and the settings that it needs."""

    server: Lakekeeper
    storage: AnyStorage
    warehouse_id: str
    tabular_id: str
    location: str
    namespace: list[str]
    name: str
    base_uri: str
    readable: bool = True
    writable: bool = True

    def to_json(self, delegation: Delegation) -> dict[str, Any]:
        """Return `config`, and `storage-credentials` if some were vended; releases always return one entry."""
        vending = self.storage.vends_credentials and self.readable
        signing = self.storage.signs_requests and self.readable
        vend, sign = delegation.methods(vending=vending, signing=signing)
        config = self.plain_config()
        if sign:
            config |= self._build_signing_config()
        if not vend:
            return {"config": config} | ({} if self._omits_entries else {"storage-credentials": self._entries({})})
        keys = self._vend()
        is_in_s3 = isinstance(self.storage, WarehouseStorage)
        config |= {key: keys[key] for key in (KEY_FIELDS if is_in_s3 else keys)}
        return {"config": config, "storage-credentials": self._entries(keys)}

    def vends(self, delegation: Delegation) -> bool:
        """Return whether a client that requests this delegation gets credentials."""
        vending = self.storage.vends_credentials and self.readable
        return delegation.methods(vending=vending, signing=self.storage.signs_requests and self.readable)[0]

    def storage_credentials(self) -> list[dict[str, Any]]:
        """Return the entries of `storage-credentials`, without keys if nothing is vended."""
        if self.storage.vends_credentials and self.readable:
            return self._entries(self._vend())
        return [] if self._omits_entries else self._entries({})

    @property
    def _omits_entries(self) -> bool:
        """Return whether an entry without credentials is left out: on 0.14, and if it had no property."""
        return self.server.settings.is_at_least("0.14") or not self.plain_config()

    def plain_config(self) -> dict[str, str]:
        """Return the client configuration without credentials. Azure and Google have none."""
        if not isinstance(self.storage, WarehouseStorage):
            return {}
        profile = self.storage.profile
        config = {"s3.region": profile.region, "region": profile.region, "client.region": profile.region}
        endpoint = self.server.access.s3_endpoint(profile)
        if endpoint:
            config["s3.endpoint"] = endpoint
        if profile.path_style_access or (endpoint and profile.endpoint is None):
            config["s3.path-style-access"] = "true"
        if profile.aws_kms_key_arn and self.server.settings.is_at_least("0.13"):
            config |= {"s3.sse.type": "kms", "s3.sse.key": profile.aws_kms_key_arn}
        return config

    def _vend(self) -> dict[str, str]:
        namespace, table = _path_segment(SEPARATOR.join(self.namespace)), _path_segment(self.name)
        path = f"v1/{self.warehouse_id}/namespaces/{namespace}/tables/{table}/credentials"
        refresh_uri = f"{self.base_uri}/catalog/{path}"
        if not isinstance(self.storage, WarehouseStorage):
            vended = self.storage.vend(self.server.access.http, self.location, writable=self.writable)
            return vended.config | {vended.refresh_key: refresh_uri}
        keys = self.server.vendor.vend(self.storage, self.location, writable=self.writable)
        expires = str(int(keys.expires_at or 0) * 1000)
        return {
            "s3.access-key-id": keys.access_key_id,
            "s3.secret-access-key": keys.secret_access_key,
            "s3.session-token": keys.session_token or "",
            "s3.session-token-expires-at-ms": expires,
            "expiration-time": expires,
            "client.refresh-credentials-endpoint": refresh_uri,
        }

    def _entries(self, keys: dict[str, str]) -> list[dict[str, Any]]:
        config = self.plain_config()
        config.pop("region", None)
        return [{"prefix": self.location, "config": config | keys}]

    def _build_signing_config(self) -> dict[str, str]:
        endpoint = f"v1/signer/{self.warehouse_id}/tabular-id/{self.tabular_id}/v1/aws/s3/sign"
        config = {
            "s3.remote-signing-enabled": "true",
            "s3.signer": "S3V4RestSigner",
            "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
            "s3.signer.uri": f"{self.base_uri}/catalog/",
            "s3.signer.endpoint": endpoint,
        }
        if not self.server.settings.is_at_least("0.13"):
            return config
        return config | {"signer.uri": f"{self.base_uri}/catalog/", "signer.endpoint": endpoint}


def _path_segment(text: str) -> str:
    """Percent-encode everything but letters and digits, as the server does."""
    return re.sub(r"[_.~-]", lambda match: f"%{ord(match[0]):02X}", quote(text, safe=""))
