"""Gauges on a Prometheus pushgateway. Each check replaces the group as a whole (PUT), so no stale stack remains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlsplit

import httpx

from lakewright.ci.errors import PublishError, SettingError
from lakewright.ci.publishing.check import DriftCheck
from lakewright.ci.publishing.gauges import make_gauges, parse_last_successes
from lakewright.http.retry import RetryableError, RetryPolicy
from lakewright.names.host_kinds import leaves_without_tls

JOB = "lakewright_drift"
"""Label `job` of the group."""
USER_VARIABLE, PASSWORD_VARIABLE = "PUSHGATEWAY_USERNAME", "PUSHGATEWAY_PASSWORD"
_TRANSIENT_STATUSES = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True)
class Pushgateway:
    """A pushgateway, and the group of a project on it."""

    url: str
    grouping: Mapping[str, str] = field(default_factory=dict[str, str])
    """Labels of the group besides `job`, such as the project's."""
    auth: tuple[str, str] | None = field(default=None, repr=False)
    retry: RetryPolicy = field(default_factory=RetryPolicy)

    def __post_init__(self) -> None:
        """Refuse an address that cannot be used. Raises SettingError."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingError(
                f"pushgateway: expected an address such as http://pushgateway.monitoring:9091, found {self.url!r}"
            )
        if parts.username or parts.password:
            raise SettingError(
                f"pushgateway: expected an address without credentials; set {USER_VARIABLE} and {PASSWORD_VARIABLE}"
            )
        if self.auth and leaves_without_tls(self.url):
            raise SettingError(f"pushgateway {self.url}: expected `https://`, as a password is sent")

    def push(self, check: DriftCheck) -> None:
        """Replace the group by the gauges of a check. Raises PublishError."""
        import prometheus_client  # noqa: PLC0415 - slow to load

        registry = make_gauges(check, parse_last_successes(self._fetch_exposition(), {"job": JOB, **self.grouping}))
        # The type of the library's `handler` is incomplete.
        push = cast("Callable[..., None]", prometheus_client.push_to_gateway)  # pyright: ignore[reportUnknownMemberType]
        push(self.url, JOB, registry, dict(self.grouping), timeout=30, handler=self._make_handler)

    def _fetch_exposition(self) -> str:
        return self._call("GET", f"{self.url.rstrip('/')}/metrics", {}, b"").text

    def _make_handler(
        self, url: str, method: str, timeout: float | None, headers: Sequence[tuple[str, str]], data: bytes
    ) -> Callable[[], None]:
        """Return a call for the library, with its URL, headers and data."""
        del timeout
        return lambda: self._call(method, url, dict(headers), data) and None

    def _call(self, method: str, url: str, headers: dict[str, str], data: bytes) -> httpx.Response:
        """Make a call. All of them may be repeated."""
        return self.retry.run(lambda: self._try(method, url, headers, data))

    def _try(self, method: str, url: str, headers: dict[str, str], data: bytes) -> httpx.Response:
        gateway = f"pushgateway {self.url}"
        try:
            response = httpx.request(method, url, headers=headers, content=data, auth=self.auth, timeout=30.0)
        except httpx.HTTPError as error:
            raise RetryableError(PublishError(f"{gateway} did not respond: {type(error).__name__}")) from None
        if response.is_success:
            return response
        failure = PublishError(
            f"{gateway} responded with {response.status_code} to {method}: {' '.join(response.text.split())[:200]}"
        )
        if response.status_code in _TRANSIENT_STATUSES:
            raise RetryableError(failure)
        raise failure


def read_credentials(environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Return user and password of the environment; None without them."""
    user = environ.get(USER_VARIABLE, "")
    return (user, environ.get(PASSWORD_VARIABLE, "")) if user else None
