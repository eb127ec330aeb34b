"""Registration of a tenant's computing units at Texera, with the token of the user who will own them there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

import httpx

from lakewright.errors import LakewrightError
from lakewright.names.host_kinds import leaves_without_tls

_UNITS = "/api/computing-unit"
_TIMEOUT = httpx.Timeout(30.0)

LOCAL_UNITS_OFF = (
    "Texera does not take units of type `local`, which it does not start itself: its setting"
    " `computing-unit.local.enabled` is off. Set COMPUTING_UNIT_LOCAL_ENABLED=true in Texera's"
    " computing-unit-managing-service, and in its config-service for the dashboard, and register again"
)
"""Remedy for Texera's refusal of units that it does not start."""


class TexeraError(LakewrightError):
    """Texera refused a registration or does not respond."""


@dataclass(frozen=True)
class RegisteredUnit:
    """A unit as Texera knows it."""

    name: str
    uri: str
    cuid: int
    is_new: bool


class TexeraUnits:
    """The computing units of one user of Texera. Methods raise TexeraError."""

    def __init__(self, url: str, token: str) -> None:
        """Create the client; it makes no call.

        Args:
            url: Address of Texera, such as `https://texera.example`.
            token: The user's token (JWT), as Texera's dashboard has it.
        """
        if urlsplit(url).scheme not in ("http", "https") or leaves_without_tls(url):
            raise TexeraError(f"expected `https://` in the address of Texera, as a token is sent; found {url}")
        self._url = url.rstrip("/")
        self._headers = {"authorization": f"Bearer {token}", "accept": "application/json"}

    def register(self, unit: Mapping[str, str]) -> RegisteredUnit:
        """Register a unit unless the user has a unit of its name and address.

        Args:
            unit: The body of `POST /computing-unit/create`, as in the output `texera_register`.
        """
        for registered_unit in self._list():
            if (registered_unit.name, registered_unit.uri) == (unit["name"], unit["uri"]):
                return registered_unit
        return _parse_unit(self._call("POST", f"{_UNITS}/create", dict(unit)), is_new=True)

    def _list(self) -> list[RegisteredUnit]:
        # Texera lists the user's units and units that others share, without terminated units.
        entries = self._call("GET", _UNITS)
        if not isinstance(entries, list):
            raise TexeraError(f"{self._url}{_UNITS}: expected a list of computing units; found another document")
        return [_parse_unit(entry, is_new=False) for entry in cast(list[Any], entries) if _is_own(entry)]

    def _call(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
        url = f"{self._url}{path}"
        try:
            response = httpx.request(method, url, json=body, headers=self._headers, timeout=_TIMEOUT)
        except httpx.HTTPError as error:
            raise TexeraError(f"{url} does not respond ({type(error).__name__})") from None
        if response.is_success:
            try:
                return response.json()
            except ValueError:
                raise TexeraError(f"{url}: expected JSON; found another document. Is this Texera's address?") from None
        raise TexeraError(_explain(url, response))


def _explain(url: str, response: httpx.Response) -> str:
    if response.status_code == 401:
        return f"{url}: Texera does not accept the token. Copy a current token of a user from Texera's dashboard"
    if response.status_code == 403 and "'local' is not allowed" in response.text:
        return f"{url}: {LOCAL_UNITS_OFF}"
    if response.status_code == 403:
        return f"{url}: the user may not create computing units; the role REGULAR or ADMIN is required"
    return f"{url}: expected a success; found status {response.status_code}"


def _is_own(entry: object) -> bool:
    return isinstance(entry, dict) and cast(dict[str, Any], entry).get("isOwner") is True


def _parse_unit(entry: Any, *, is_new: bool) -> RegisteredUnit:
    try:
        unit = entry["computingUnit"]
        return RegisteredUnit(str(unit["name"]), str(unit["uri"]), int(unit["cuid"]), is_new)
    except (KeyError, TypeError, ValueError):
        raise TexeraError("expected `computingUnit` with name, uri and cuid in Texera's response; found none") from None
