"""CatalogCache: one catalog per warehouse, opened once, bounded, closed on removal, never past its credentials."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import pytest
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import S3Keys
from lakewright_spark.pyiceberg_client.catalog_cache import CacheCounts, CatalogCache

KEYS = S3Keys(access_key_id="env:S3_USER", secret_access_key="env:S3_PASSWORD")
CONFIG = CatalogConfig(
    kind="jdbc",
    tenant="acme",
    uri="sqlite:////catalog.db",
    warehouses=[
        *(CatalogWarehouse(name=f"w{n}", location="s3://b/p") for n in range(100)),
        CatalogWarehouse(name="keys", location="s3://b/p", s3_keys=KEYS),
    ],
)


@dataclass
class Opened:
    """A catalog that counts how often it was closed."""

    name: str
    properties: dict[str, Any] = field(default_factory=dict)
    closed: int = 0

    def close(self) -> None:
        self.closed += 1


class Opener:
    """Opens catalogs; `time` is the time of the cache's clocks."""

    def __init__(self) -> None:
        self.catalogs: list[Opened] = []
        self.properties: dict[str, Any] = {}
        self.fails = 0
        self.time = 1000.0

    def __call__(self, config: CatalogConfig, name: str) -> Any:
        if self.fails:
            self.fails -= 1
            raise ConnectionError(name)
        self.catalogs.append(Opened(name, dict(self.properties)))
        return self.catalogs[-1]

    def cache(self, **bounds: Any) -> CatalogCache:
        return CatalogCache(self, now=lambda: self.time, wall=lambda: self.time, **bounds)


@pytest.fixture
def opener() -> Opener:
    return Opener()


def test_catalog_is_opened_once(opener: Opener) -> None:
    cache = opener.cache()
    assert cache.get(CONFIG, "w1") is cache.get(CONFIG, "w1")
    assert cache.get(CONFIG, "w2") is not cache.get(CONFIG, "w1")
    assert cache.counts() == CacheCounts(hits=2, misses=2, closed=0)


def test_concurrent_requests_open_one_catalog(opener: Opener) -> None:
    slow = threading.Event()
    started = threading.Event()

    def open_slowly(config: CatalogConfig, name: str) -> Any:
        if name == "w1":
            started.set()
            assert slow.wait(30)
        return opener(config, name)

    cache = CatalogCache(open_slowly)
    catalogs: list[Any] = []
    threads = [threading.Thread(target=lambda: catalogs.append(cache.get(CONFIG, "w1"))) for _ in range(16)]
    for thread in threads:
        thread.start()
    assert started.wait(30)
    cache.get(CONFIG, "w2")
    assert not catalogs
    slow.set()
    for thread in threads:
        thread.join()
    assert len({id(catalog) for catalog in catalogs}) == 1
    assert cache.counts() == CacheCounts(hits=15, misses=2, closed=0)


def test_least_recently_used_catalog_is_closed(opener: Opener) -> None:
    cache = opener.cache(size=64)
    for number in range(64):
        cache.get(CONFIG, f"w{number}")
    cache.get(CONFIG, "w0")
    cache.get(CONFIG, "w64")
    assert len(cache) == 64
    assert [opened.name for opened in opener.catalogs if opened.closed] == ["w1"]


def test_unused_catalog_is_closed_after_an_hour(opener: Opener) -> None:
    cache = opener.cache()
    cache.get(CONFIG, "w1")
    cache.get(CONFIG, "w2")
    opener.time += 3599
    cache.get(CONFIG, "w1")
    opener.time += 2
    cache.get(CONFIG, "w3")
    assert [opened.name for opened in opener.catalogs if opened.closed] == ["w2"]
    opener.time += 3601
    assert cache.get(CONFIG, "w1") is opener.catalogs[-1]  # a new catalog


def test_expired_credentials_are_not_cached(opener: Opener) -> None:
    opener.properties = {"s3.session-token-expires-at-ms": str(int((opener.time + 900) * 1000))}
    cache = opener.cache()
    first = cache.get(CONFIG, "w1")
    opener.time += 800
    assert cache.get(CONFIG, "w1") is first
    opener.time += 50  # less than a minute is left
    assert cache.get(CONFIG, "w1") is not first
    assert opener.catalogs[0].closed == 1


def test_changed_keys_open_a_new_catalog(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S3_USER", "user")
    monkeypatch.setenv("S3_PASSWORD", "old")
    cache = opener.cache()
    first = cache.get(CONFIG, "keys")
    assert cache.get(CONFIG, "keys") is first
    monkeypatch.setenv("S3_PASSWORD", "new")
    assert cache.get(CONFIG, "keys") is not first
    assert opener.catalogs[0].closed == 1


def test_failed_opening_is_not_cached(opener: Opener) -> None:
    opener.fails = 1
    cache = opener.cache()
    with pytest.raises(ConnectionError):
        cache.get(CONFIG, "w1")
    assert len(cache) == 0
    assert cache.get(CONFIG, "w1") is opener.catalogs[0]


def test_close_closes_all_catalogs(opener: Opener) -> None:
    cache = opener.cache()
    for number in range(3):
        cache.get(CONFIG, f"w{number}")
    cache.close()
    assert [opened.closed for opened in opener.catalogs] == [1, 1, 1]
    assert len(cache) == 0
