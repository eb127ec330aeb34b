"""Two processes create a namespace of a catalog in a database at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest
from lakewright_spark.pyiceberg_client.database_catalog import DatabaseCatalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError


def open_database(folder: Path) -> DatabaseCatalog:
    return DatabaseCatalog("jdbc", uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=folder.as_uri())


def test_namespace_of_another_process_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late = open_database(tmp_path)
    open_database(tmp_path).create_namespace("sales")
    monkeypatch.setattr(late, "namespace_exists", lambda namespace: False)  # looked before the other process created it

    with pytest.raises(NamespaceAlreadyExistsError, match="namespace sales already exists"):
        late.create_namespace("sales")
    late.create_namespace_if_not_exists("sales")

    assert late.list_namespaces() == [("sales",)]
