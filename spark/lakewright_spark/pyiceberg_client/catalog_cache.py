"""CatalogCache: open PyIceberg catalogs by warehouse; idle, surplus and expired catalogs are closed."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from pyiceberg.catalog import Catalog

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import PasswordAuth
from lakewright_spark.pyiceberg_client.catalog import open_catalog

SIZE = 64
IDLE_SECONDS = 3600.0
"""The limits of Texera's cache: 64 catalogs, 60 minutes after the last use."""

LEAD_SECONDS = 60.0
"""A catalog whose credential expires within this time is no longer returned."""


@dataclass(frozen=True)
class CacheCounts:
    """Number of catalogs that were reused (hits), opened (misses), and closed for their age or to make room."""

    hits: int = 0
    misses: int = 0
    closed: int = 0


@dataclass
class _Slot:
    """The entry of a warehouse. `making` is locked while its catalog is opened; only callers of this warehouse wait."""

    making: threading.Lock = field(default_factory=threading.Lock)
    catalog: Catalog | None = None
    secret: bytes = b""
    expires_at: float | None = None
    """Seconds since the epoch at which a credential of the catalog expires."""
    used: float = 0.0
    waiting: int = 0


class CatalogCache:
    """Catalogs by configuration and warehouse. Get a catalog for each use and do not keep it: it may be closed.

    `opener` opens a catalog; `now` (any clock, seconds) measures idle time and `wall` (seconds since the epoch) the
    life of credentials. The cache keeps at most `size` catalogs, each for `idle_seconds` after its last use. It closes
    a catalog earlier if a credential of the catalog expires, or if a secret that the configuration refers to changes.
    """

    def __init__(
        self,
        opener: Callable[[CatalogConfig, str], Catalog] = open_catalog,
        *,
        size: int = SIZE,
        idle_seconds: float = IDLE_SECONDS,
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Create an empty cache."""
        self._opener, self._size, self._idle, self._now, self._wall = opener, size, idle_seconds, now, wall
        self._guard = threading.Lock()
        self._slots: OrderedDict[tuple[str, str], _Slot] = OrderedDict()
        self._salt = secrets.token_bytes(16)
        self._hits = self._misses = self._closed = 0

    def get(self, config: CatalogConfig, warehouse: str) -> Catalog:
        """Return the warehouse's catalog. Raises the errors of `opener`; the next caller then tries again."""
        key = (config.to_json(), warehouse)
        with self._guard:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
            slot.waiting += 1
        try:
            with slot.making:
                return self._open_or_reuse(slot, config, warehouse)
        finally:
            with self._guard:
                slot.waiting -= 1
                slot.used = self._now()
                evicted = self._evict()
            self._close(evicted)

    def counts(self) -> CacheCounts:
        """Return the counts so far."""
        with self._guard:
            return CacheCounts(self._hits, self._misses, self._closed)

    def __len__(self) -> int:
        """Return the number of entries."""
        with self._guard:
            return sum(slot.catalog is not None for slot in self._slots.values())

    def close(self) -> None:
        """Close every catalog. The cache remains usable."""
        with self._guard:
            evicted = [slot.catalog for slot in self._slots.values() if slot.catalog]
            self._slots.clear()
        self._close(evicted)

    def _open_or_reuse(self, slot: _Slot, config: CatalogConfig, warehouse: str) -> Catalog:
        secret = self._fingerprint(config, warehouse)
        idle = self._now() - slot.used > self._idle
        expires_soon = slot.expires_at is not None and slot.expires_at - LEAD_SECONDS <= self._wall()
        if slot.catalog is not None and not idle and not expires_soon and slot.secret == secret:
            with self._guard:
                self._hits += 1
            return slot.catalog
        stale, slot.catalog = slot.catalog, None
        if stale is not None:
            self._close([stale])
        with self._guard:
            self._misses += 1
        slot.catalog = self._opener(config, warehouse)
        slot.secret, slot.expires_at = secret, _find_expiry(slot.catalog)
        return slot.catalog

    def _evict(self) -> list[Catalog]:
        """Remove idle entries, failed entries, and the longest unused surplus. Entries with waiting callers remain."""
        evicted: list[Catalog] = []
        now = self._now()
        for key, slot in list(self._slots.items()):
            surplus = len(self._slots) > self._size
            if not slot.waiting and (surplus or slot.catalog is None or now - slot.used > self._idle):
                del self._slots[key]
                evicted += [slot.catalog] if slot.catalog else []
        return evicted

    def _close(self, catalogs: list[Catalog]) -> None:
        for catalog in catalogs:
            catalog.close()
        with self._guard:
            self._closed += len(catalogs)

    def _fingerprint(self, config: CatalogConfig, warehouse: str) -> bytes:
        """Return the fingerprint of the secrets that the catalog keeps.

        It reads bearer tokens at every request, and client secrets at every renewal of a token.
        """
        warehouse_config = next((w for w in config.warehouses if w.name == warehouse), None)
        secret_values = (
            warehouse_config.s3_keys.secret_options(os.environ) if warehouse_config and warehouse_config.s3_keys else {}
        )
        if isinstance(config.auth, PasswordAuth):
            secret_values |= config.auth.secret_options(os.environ)
        return (
            hmac.digest(self._salt, repr(sorted(secret_values.items())).encode(), hashlib.sha256)
            if secret_values
            else b""
        )


def _find_expiry(catalog: Catalog) -> float | None:
    """Return when the first credential of the catalog expires, in seconds since the epoch; None without an expiry."""
    ends = [
        int(value) / 1000
        for name, value in catalog.properties.items()
        if name.endswith("expires-at-ms") and str(value).isdigit()
    ]
    return min(ends, default=None)


CATALOGS = CatalogCache()
"""The cache of this process."""
