"""CatalogCache: open PyIceberg catalogs by warehouse, closed when they are idle, surplus or expired."""

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
"""Texera's bounds of its own cache: 64 catalogs, 60 minutes after the last use."""

LEAD_SECONDS = 60.0
"""A credential that ends within this time is not handed out any more."""


@dataclass(frozen=True)
class CacheCounts:
    """What was found (hits), what was made (misses), and what was closed again to make room or for its age."""

    hits: int = 0
    misses: int = 0
    closed: int = 0


@dataclass
class _Slot:
    """One warehouse's place. `making` is held while its catalog is made: others wait for it, and for it alone."""

    making: threading.Lock = field(default_factory=threading.Lock)
    catalog: Catalog | None = None
    secret: bytes = b""
    until: float | None = None
    """Seconds since the epoch at which a credential ends that the catalog itself holds."""
    used: float = 0.0
    waiting: int = 0


class CatalogCache:
    """Catalogs by configuration and warehouse. Ask for one at each use and keep none: it may be closed at any time.

    `opener` makes a catalog; `now` (any clock, seconds) measures idleness and `wall` (seconds since the epoch)
    credentials. At most `size` catalogs stay, each `idle_seconds` after its last use, and none past the life of a
    credential that it holds: one with an end of its own, or one by reference that was changed meanwhile.
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
        """The warehouse's catalog. Raises what making it raises; the next caller then tries again."""
        key = (config.to_json(), warehouse)
        with self._guard:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
            slot.waiting += 1
        try:
            with slot.making:
                return self._good(slot, config, warehouse)
        finally:
            with self._guard:
                slot.waiting -= 1
                slot.used = self._now()
                gone = self._surplus()
            self._close(gone)

    def counts(self) -> CacheCounts:
        """Return the counts so far."""
        with self._guard:
            return CacheCounts(self._hits, self._misses, self._closed)

    def __len__(self) -> int:
        """Return the number of entries."""
        with self._guard:
            return sum(slot.catalog is not None for slot in self._slots.values())

    def close(self) -> None:
        """Close every catalog. The cache itself can be used on."""
        with self._guard:
            gone = [slot.catalog for slot in self._slots.values() if slot.catalog]
            self._slots.clear()
        self._close(gone)

    def _good(self, slot: _Slot, config: CatalogConfig, warehouse: str) -> Catalog:
        secret = self._fingerprint(config, warehouse)
        idle = self._now() - slot.used > self._idle
        ended = slot.until is not None and slot.until - LEAD_SECONDS <= self._wall()
        if slot.catalog is not None and not idle and not ended and slot.secret == secret:
            with self._guard:
                self._hits += 1
            return slot.catalog
        stale, slot.catalog = slot.catalog, None
        if stale is not None:
            self._close([stale])
        with self._guard:
            self._misses += 1
        slot.catalog = self._opener(config, warehouse)
        slot.secret, slot.until = secret, _end(slot.catalog)
        return slot.catalog

    def _surplus(self) -> list[Catalog]:
        """Take out what is idle, what never came about, and the longest unused above the bound. Nobody waits there."""
        gone: list[Catalog] = []
        now = self._now()
        for key, slot in list(self._slots.items()):
            surplus = len(self._slots) > self._size
            if not slot.waiting and (surplus or slot.catalog is None or now - slot.used > self._idle):
                del self._slots[key]
                gone += [slot.catalog] if slot.catalog else []
        return gone

    def _close(self, catalogs: list[Catalog]) -> None:
        for catalog in catalogs:
            catalog.close()
        with self._guard:
            self._closed += len(catalogs)

    def _fingerprint(self, config: CatalogConfig, warehouse: str) -> bytes:
        """Return the fingerprint of the secrets that the catalog keeps. It reads other secrets at every request."""
        known = next((w for w in config.warehouses if w.name == warehouse), None)
        kept = known.s3_keys.secret_options(os.environ) if known and known.s3_keys else {}
        if isinstance(config.auth, PasswordAuth):
            kept |= config.auth.secret_options(os.environ)
        return hmac.digest(self._salt, repr(sorted(kept.items())).encode(), hashlib.sha256) if kept else b""


def _end(catalog: Catalog) -> float | None:
    """When the earliest credential ends that the server gave the catalog as a whole, in seconds since the epoch."""
    ends = [
        int(value) / 1000
        for name, value in catalog.properties.items()
        if name.endswith("expires-at-ms") and str(value).isdigit()
    ]
    return min(ends, default=None)


CATALOGS = CatalogCache()
"""The cache of this process."""
