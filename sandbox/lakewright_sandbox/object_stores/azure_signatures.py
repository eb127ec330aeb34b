"""Signatures of Azure Storage: Shared Key of requests, and service SAS of a directory or container.

Sources: Microsoft, "Authorize with Shared Key" and "Create a service SAS" (version 2020-12-06 and later). Azure
computes a signature from the decoded path.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import parse_qsl, urlencode

SAS_VERSION = "2022-11-02"
"""Version of SAS tokens of Lakekeeper 0.13.3 (crate azure_storage 0.21)."""
READ_PERMISSIONS, WRITE_PERMISSIONS = "rl", "rawdl"
"""Permissions of vended tokens. Source: `az/mod.rs` of Lakekeeper 0.13.3."""
_SIGNED_HEADERS = (
    *("content-encoding", "content-language", "content-length", "content-md5", "content-type", "date"),
    *("if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"),
)
_TIME = "%Y-%m-%dT%H:%M:%SZ"

SasResource = Literal["d", "c"]


@dataclass(frozen=True)
class AzureAccount:
    """A storage account and its key, base64."""

    name: str
    key: str = field(repr=False)

    def sign(self, text: str) -> str:
        """Return the signature of a text."""
        digest = hmac.new(base64.b64decode(self.key), text.encode(), hashlib.sha256).digest()
        return base64.b64encode(digest).decode()


def authorize(
    account: AzureAccount, method: str, path: str, params: Mapping[str, str], headers: Mapping[str, str]
) -> dict[str, str]:
    """Return the headers of a request with its Shared Key signature.

    Args:
        account: The account.
        method: HTTP method.
        path: Path of the URL, encoded, which begins with the account's name as on emulators.
        params: Query parameters, decoded.
        headers: Headers of the request, with its `content-length`.
    """
    now = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    sent = {name.lower(): value for name, value in headers.items()} | {"x-ms-date": now}
    sent.setdefault("x-ms-version", "2021-08-06")
    plain = [("" if sent.get(name) == "0" else sent.get(name, "")) for name in _SIGNED_HEADERS]
    plain[_SIGNED_HEADERS.index("date")] = ""
    canonical_headers = [f"{name}:{value}" for name, value in sorted(sent.items()) if name.startswith("x-ms-")]
    resource = [f"/{account.name}{path}", *(f"{name.lower()}:{value}" for name, value in sorted(params.items()))]
    text = "\n".join([method, *plain, *canonical_headers, *resource])
    return sent | {"authorization": f"SharedKey {account.name}:{account.sign(text)}"}


def make_sas(
    account: AzureAccount,
    container: str,
    directory: str,
    *,
    permissions: str,
    expires: datetime,
) -> str:
    """Return the query of a service SAS for a directory, without a leading `?`; for the container if it is empty."""
    resource: SasResource = "d" if directory else "c"
    token = {"sv": SAS_VERSION, "sp": permissions, "sr": resource, "se": expires.astimezone(UTC).strftime(_TIME)}
    if directory:
        token["sdd"] = str(len(directory.split("/")))
    return urlencode(token | {"sig": _sign_sas(account, container, directory, token)})


def find_sas_problem(account: AzureAccount, container: str, path: str, token: Mapping[str, str], now: datetime) -> str:
    """Return why a directory SAS gives no access to a path of a container; empty if it does.

    Permissions are compared by the caller.
    """
    if token.get("sr") != "d" or not token.get("sdd", "").isdigit():
        return "AuthenticationFailed: expected a SAS of a directory (`sr=d`) with its depth (`sdd`)"
    segments = path.split("/")
    directory = "/".join(segments[: int(token["sdd"])])
    if len(segments) < int(token["sdd"]) or not hmac.compare_digest(
        _sign_sas(account, container, directory, token), token.get("sig", "")
    ):
        return "AuthenticationFailed: the signature is not valid for this path"
    if datetime.strptime(token["se"], _TIME).replace(tzinfo=UTC) <= now:
        return "AuthenticationFailed: the SAS has expired"
    return ""


def read_sas(query: str) -> dict[str, str]:
    """Return the parameters of a SAS."""
    return dict(parse_qsl(query))


def _sign_sas(account: AzureAccount, container: str, directory: str, token: Mapping[str, str]) -> str:
    resource = "/".join(["", "blob", account.name, container, *([directory] if directory else [])])
    # Empty fields: identifier, IP, protocol before the version; snapshot, encryption scope and headers after `sr`.
    signed = [token.get("sp", ""), token.get("st", ""), token.get("se", ""), resource, "", "", token.get("spr", "")]
    signed += [token.get("sv", ""), token.get("sr", ""), "", "", "", "", "", "", ""]
    return account.sign("\n".join(signed))
