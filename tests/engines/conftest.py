"""Fixtures of engines: a catalog that enforces grants."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engines.enforced_catalog import EnforcedCatalog, start_catalog


@pytest.fixture(scope="session")
def enforced_catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EnforcedCatalog]:
    """Return a catalog that enforces grants; all tests share it."""
    with start_catalog(tmp_path_factory.mktemp("engines")) as catalog:
        yield catalog
