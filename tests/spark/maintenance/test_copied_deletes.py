"""Copies of tables with delete files: positions of deleted rows name data files, so the copy has files of its own."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest
import s3fs
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.migration.copy import copy_table, list_copied_files
from lakewright_spark.migration.copy_stores import S3Store
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.pyiceberg_client.table_metadata import load_metadata

from tests.spark.maintenance.conftest import Maintained
from tests.spark.maintenance.delete_files import delete_by_equality

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.stand_in("reads the store with the sandbox's key")]


@pytest.fixture
def store(tenant: CatalogConfig, create_table: Callable[..., Maintained]) -> S3Store:
    table = create_table("store_of_copies", "AS SELECT 1 AS n")
    admin, aws = table.sandbox.admin, table.sandbox.aws
    files = s3fs.S3FileSystem(
        key=admin.access_key_id,
        secret=admin.secret_access_key.get_secret_value(),
        endpoint_url=aws.endpoint,
        client_kwargs={"region_name": aws.region},
        use_listings_cache=False,
    )
    return S3Store(files)


@pytest.mark.parametrize("version", [2, 3])
def test_copy_keeps_deleted_rows_deleted(
    create_table: Callable[..., Maintained], tenant: CatalogConfig, store: S3Store, version: int
) -> None:
    table = create_table(
        f"copied_{version}",
        "(n int, part int) USING iceberg PARTITIONED BY (part) TBLPROPERTIES "
        f"('format-version'='{version}', 'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read')",
    )
    table.do("INSERT INTO THIS SELECT /*+ COALESCE(1) */ id, id % 2 FROM range(20)")
    first = table.do("SELECT snapshot_id FROM THIS.snapshots").collect()[0][0]
    table.do("DELETE FROM THIS WHERE n IN (3, 4, 5)")
    table.do("UPDATE THIS SET n = n + 100 WHERE n = 6")
    delete_by_equality(table, 7, 1)
    rows = table.do("SELECT n, part FROM THIS ORDER BY n").collect()
    assert len(rows) == 16
    assert table.do("SELECT count(*) FROM THIS.delete_files").collect()[0][0] >= 3
    before = table.objects()

    catalog = open_catalog(tenant, "results")
    opened = load_metadata(catalog, ("maintained", table.table.name))
    target = f"{opened.metadata.location.rpartition('/')[0]}/{uuid.uuid4()}"
    location = copy_table(opened, target, store)
    assert copy_table(opened, target, store) == location, "a second call changes nothing"
    assert list_copied_files(location, store) == store.list_files(target).keys()
    table.do("DROP TABLE THIS")
    store.delete(before)
    catalog.register_table(("maintained", table.table.name), location)

    assert table.do("SELECT n, part FROM THIS ORDER BY n").collect() == rows
    assert table.do(f"SELECT count(*) FROM THIS VERSION AS OF {first}").collect()[0][0] == 20
    paths = {row[0] for row in table.do("SELECT file_path FROM THIS.all_delete_files").collect()}
    assert all(path.startswith(f"{target}/") for path in paths)
    table.do("DELETE FROM THIS WHERE n = 8")
    table.job("compaction")
    assert len(table.do("SELECT n FROM THIS").collect()) == len(rows) - 1
