"""Spark with the unmodified Iceberg runtime works with the sandbox Lakekeeper, for each access delegation."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import boto3
import httpx
import pytest
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.session import jars
from lakewright_spark.session.builder import SMALL_JOB
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession
from waiting import wait_until

pytestmark = pytest.mark.spark

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
DELEGATIONS = {"vended": "vended-credentials", "signed": "remote-signing", "role": "vended-credentials"}

# In the catalog `role`, Spark itself deletes the files after a drop with PURGE, and the server deletes them soon after.
# On a busy machine the server is first, and Spark fails as it reads the deleted files of a table with many snapshots.
DROP = {"vended": "DROP TABLE {} PURGE", "signed": "DROP TABLE {} PURGE", "role": "DROP TABLE {}"}


@pytest.fixture(scope="module")
def bucket(sandbox: Sandbox) -> str:
    name = f"catalog-{uuid.uuid4().hex[:8]}"
    _client(sandbox, "s3").create_bucket(Bucket=name)
    return name


@pytest.fixture(scope="module")
def server(sandbox: Sandbox) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=sandbox.lakekeeper.endpoint, timeout=60) as client:
        client.post("/management/v1/bootstrap", json={"accept-terms-of-use": True})
        yield client


@pytest.fixture(scope="module")
def project(sandbox: Sandbox, server: httpx.Client, bucket: str) -> str:
    """Create a warehouse for each delegation: keys with vending, keys with signing, an AWS role with vending."""
    project = str(uuid.uuid4())
    server.post("/management/v1/project", json={"project-name": "spark", "project-id": project}).raise_for_status()
    external_id = str(uuid.uuid4())
    keys = {
        "type": "s3",
        "credential-type": "access-key",
        "access-key-id": sandbox.admin.access_key_id,
        "secret-access-key": sandbox.admin.secret_access_key.get_secret_value(),
    }
    plain = {"flavor": "s3-compat", "endpoint": sandbox.aws.endpoint, "path-style-access": True}
    profiles = {
        "vended": (plain | {"sts-enabled": True}, keys),
        "signed": (plain | {"sts-enabled": False}, keys),
        "role": (
            {"flavor": "aws", "sts-enabled": True, "assume-role-arn": _role(sandbox, bucket, external_id)},
            {"type": "s3", "credential-type": "aws-system-identity", "external-id": external_id},
        ),
    }
    for name, (profile, credential) in profiles.items():
        body = {
            "warehouse-name": name,
            "project-id": project,
            "storage-profile": {"type": "s3", "bucket": bucket, "region": "us-east-1", "key-prefix": name, **profile},
            "storage-credential": credential,
        }
        response = server.post("/management/v1/warehouse", json=body)
        assert response.status_code == 201, response.text
    return project


@pytest.fixture(scope="module")
def spark(sandbox: Sandbox, project: str) -> Iterator[SparkSession]:
    options = {**SMALL_JOB, **jars.driver_properties(), "spark.sql.extensions": EXTENSIONS}
    for name, delegation in DELEGATIONS.items():
        options |= {
            f"spark.sql.catalog.{name}": "org.apache.iceberg.spark.SparkCatalog",
            f"spark.sql.catalog.{name}.type": "rest",
            f"spark.sql.catalog.{name}.uri": sandbox.lakekeeper.catalog_uri,
            f"spark.sql.catalog.{name}.warehouse": f"{project}/{name}",
            f"spark.sql.catalog.{name}.header.X-Iceberg-Access-Delegation": delegation,
        }
    # Signing ends with the table, so only the catalog can delete its files. The third catalog keeps the default.
    for name in ("vended", "signed"):
        options[f"spark.sql.catalog.{name}.rest-catalog-purge"] = "true"
    builder = SparkSession.builder.master("local[2]").appName("sandbox-catalog")
    for key, value in options.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


ONE_OF_EACH_DELEGATION = pytest.mark.parametrize("catalog", ["signed", "vended"], indirect=True)


@pytest.fixture(params=sorted(DELEGATIONS))
def catalog(request: Any, spark: SparkSession) -> str:
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {request.param}.n")
    return request.param


def test_life_of_a_table(spark: SparkSession, catalog: str) -> None:
    table = f"{catalog}.n.life"
    spark.sql(f"CREATE TABLE {table} USING iceberg PARTITIONED BY (k) AS SELECT id, id % 3 AS k FROM range(9)")
    spark.sql(f"INSERT INTO {table} VALUES (100, 1)")
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT 100 AS id, 2 AS k UNION ALL SELECT 200, 2) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET k = s.k WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql(f"DELETE FROM {table} WHERE id < 3")
    spark.sql(f"UPDATE {table} SET k = 0 WHERE id = 200")
    assert _ids(spark, table) == [3, 4, 5, 6, 7, 8, 100, 200]
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS (note string, s struct<a: int, b: array<string>>)")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN note TO remark")
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(4, id)")
    spark.sql(f"ALTER TABLE {table} WRITE ORDERED BY id")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('team' = 'tests')")
    spark.sql(f"INSERT INTO {table} SELECT 300, 1, 'new', named_struct('a', 1, 'b', array('x'))")
    assert spark.sql(f"SELECT remark FROM {table} WHERE id = 300").collect() == [Row(remark="new")]
    spark.sql(f"ALTER TABLE {table} RENAME TO n.lived")
    assert _ids(spark, f"{catalog}.n.lived")[-1] == 300
    spark.sql(DROP[catalog].format(f"{catalog}.n.lived"))


@ONE_OF_EACH_DELEGATION
def test_time_travel_branches_and_tags(spark: SparkSession, catalog: str) -> None:
    table = f"{catalog}.n.travel"
    spark.sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
    first = spark.sql(f"SELECT snapshot_id FROM {table}.snapshots").collect()[0][0]
    spark.sql(f"ALTER TABLE {table} CREATE TAG v1")
    spark.sql(f"ALTER TABLE {table} CREATE BRANCH work")
    spark.sql(f"INSERT INTO {table}.branch_work VALUES (2)")
    spark.sql(f"INSERT INTO {table} VALUES (3)")
    assert _ids(spark, table) == [1, 3]
    assert _ids(spark, f"{table} VERSION AS OF 'work'") == [1, 2]
    assert _ids(spark, f"{table} VERSION AS OF {first}") == [1]
    spark.sql(f"CALL {catalog}.system.rollback_to_snapshot('n.travel', {first})")
    assert _ids(spark, table) == [1]
    spark.sql(f"CALL {catalog}.system.fast_forward('n.travel', 'main', 'work')")
    assert _ids(spark, table) == [1, 2]
    spark.sql(f"ALTER TABLE {table} DROP TAG v1")
    spark.sql(f"ALTER TABLE {table} DROP BRANCH work")
    spark.sql(f"DROP TABLE {table} PURGE")


@pytest.mark.long
@pytest.mark.parametrize("catalog", ["vended", "role", "signed"], indirect=True)
def test_maintenance(spark: SparkSession, sandbox: Sandbox, catalog: str, bucket: str) -> None:
    table = f"{catalog}.n.maintained"
    spark.sql(f"CREATE TABLE {table} AS SELECT 0 AS id")
    for number in range(1, 6):
        spark.sql(f"INSERT INTO {table} VALUES ({number})")
    call = f"CALL {catalog}.system"
    rewritten = spark.sql(f"{call}.rewrite_data_files(table => 'n.maintained', options => map('min-input-files', '2'))")
    assert rewritten.collect()[0]["rewritten_data_files_count"] == 6
    spark.sql(f"{call}.rewrite_manifests('n.maintained')")
    expired = spark.sql(
        f"{call}.expire_snapshots(table => 'n.maintained', older_than => TIMESTAMP '2100-01-01 00:00:00', "
        "retain_last => 1, clean_expired_metadata => true)"
    ).collect()[0]
    assert expired["deleted_data_files_count"] == 6
    if catalog == "signed":  # no release signs the listing that finds orphan files
        spark.sql(DROP[catalog].format(table))
        return
    orphan = _location(spark, table).partition(f"{bucket}/")[2] + "/data/orphan.parquet"
    _client(sandbox, "s3").put_object(Bucket=bucket, Key=orphan, Body=b"lost")
    young = spark.sql(f"{call}.remove_orphan_files(table => 'n.maintained', prefix_listing => true)")
    assert young.collect() == []  # the procedure keeps files younger than three days; the Action API does not
    assert [path.rpartition("/")[2] for path in _remove_all_orphans(spark, table)] == ["orphan.parquet"]
    assert _ids(spark, table) == [0, 1, 2, 3, 4, 5]
    spark.sql(f"{call}.compute_table_stats(table => 'n.maintained')")
    spark.sql(DROP[catalog].format(table))


@pytest.mark.parametrize("catalog", ["vended"], indirect=True)
def test_views(spark: SparkSession, catalog: str) -> None:
    table, view = f"{catalog}.n.seen", f"{catalog}.n.seeing"
    spark.sql(f"CREATE TABLE {table} AS SELECT 1 AS id UNION ALL SELECT 2")
    spark.sql(f"CREATE VIEW {view} AS SELECT id FROM {table} WHERE id > 1")
    assert _ids(spark, view) == [2]
    spark.sql(f"CREATE OR REPLACE VIEW {view} (id COMMENT 'all') AS SELECT id FROM {table}")
    assert _ids(spark, view) == [1, 2]
    spark.sql(f"ALTER VIEW {view} SET TBLPROPERTIES ('team' = 'tests')")
    spark.sql(f"ALTER VIEW {view} RENAME TO {catalog}.n.seen_again")
    assert [row["viewName"] for row in spark.sql(f"SHOW VIEWS IN {catalog}.n").collect()] == ["seen_again"]
    with pytest.raises(AnalysisException):
        spark.sql(f"CREATE TABLE {catalog}.n.seen_again (id int) USING iceberg")
    spark.sql(f"DROP VIEW {catalog}.n.seen_again")
    spark.sql(f"DROP TABLE {table} PURGE")


@ONE_OF_EACH_DELEGATION
def test_format_version_3(spark: SparkSession, catalog: str) -> None:
    """Row lineage, deletion vectors and default values."""
    table = f"{catalog}.n.three"
    properties = "'format-version' = '3', 'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read'"
    spark.sql(f"CREATE TABLE {table} (id bigint, v string) USING iceberg TBLPROPERTIES ({properties})")
    spark.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, 'a' FROM range(5)")
    spark.sql(f"INSERT INTO {table} VALUES (5, 'b')")
    spark.sql(f"DELETE FROM {table} WHERE id = 0")
    spark.sql(f"UPDATE {table} SET v = 'c' WHERE id = 1")
    rows = spark.sql(f"SELECT id, _row_id FROM {table} ORDER BY id").collect()
    assert [row["id"] for row in rows] == [1, 2, 3, 4, 5]
    assert len({row["_row_id"] for row in rows}) == 5
    formats = spark.sql(f"SELECT DISTINCT file_format FROM {table}.delete_files").collect()
    assert [row[0] for row in formats] == ["PUFFIN"]
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('note' = 'x')")
    spark.sql(f"DROP TABLE {table} PURGE")


@pytest.mark.parametrize("catalog", ["vended"], indirect=True)
def test_replaced_table_keeps_its_history(spark: SparkSession, catalog: str) -> None:
    table = f"{catalog}.n.replaced"
    spark.sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
    spark.sql(f"CREATE OR REPLACE TABLE {table} AS SELECT 'x' AS name, 2 AS id")
    assert _ids(spark, table) == [2]
    assert spark.sql(f"SELECT count(*) FROM {table}.snapshots").collect()[0][0] == 2
    spark.sql(f"DROP TABLE {table} PURGE")


def test_purge_by_spark_deletes_the_files(spark: SparkSession, sandbox: Sandbox, bucket: str) -> None:
    """By default Spark drops the table first and then deletes its files with its remaining credential."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS role.n")
    spark.sql("CREATE TABLE role.n.gone AS SELECT 1 AS id")
    prefix = _location(spark, "role.n.gone").partition(f"{bucket}/")[2]
    spark.sql("DROP TABLE role.n.gone PURGE")
    assert _client(sandbox, "s3").list_objects_v2(Bucket=bucket, Prefix=prefix)["KeyCount"] == 0


def test_purge_by_the_catalog_deletes_the_files(
    spark: SparkSession, sandbox: Sandbox, server: httpx.Client, project: str, bucket: str
) -> None:
    """PURGE deletes at once; without it the server deletes soon after (its default, not Iceberg's)."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS vended.n")
    for name, purge in (("asked", "PURGE"), ("unasked", "")):
        spark.sql(f"CREATE TABLE vended.n.{name} AS SELECT 1 AS id")
        prefix = _location(spark, f"vended.n.{name}").partition(f"{bucket}/")[2]
        spark.sql(f"DROP TABLE vended.n.{name} {purge}")
        _wait_for_purges(server, project)
        assert _client(sandbox, "s3").list_objects_v2(Bucket=bucket, Prefix=prefix)["KeyCount"] == 0


def test_credential_is_limited_to_its_table(
    spark: SparkSession, sandbox: Sandbox, server: httpx.Client, project: str, bucket: str
) -> None:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS role.n")
    spark.sql("CREATE TABLE role.n.mine AS SELECT 1 AS id")
    warehouse = next(warehouse for warehouse in _warehouses(server, project) if warehouse["name"] == "role")["id"]
    loaded = server.get(f"/catalog/v1/{warehouse}/namespaces/n/tables/mine").json()
    config = loaded["config"]
    vended = boto3.client(
        "s3",
        endpoint_url=config["s3.endpoint"],
        region_name="us-east-1",
        aws_access_key_id=config["s3.access-key-id"],
        aws_secret_access_key=config["s3.secret-access-key"],
        aws_session_token=config["s3.session-token"],
    )
    table_prefix = loaded["metadata"]["location"].partition(f"{bucket}/")[2]
    vended.put_object(Bucket=bucket, Key=f"{table_prefix}/data/x", Body=b"x")
    for key in (f"{table_prefix}-not/x", "role/x", "vended/x"):
        with pytest.raises(vended.exceptions.ClientError, match="AccessDenied"):
            vended.put_object(Bucket=bucket, Key=key, Body=b"x")
    spark.sql("DROP TABLE role.n.mine PURGE")


def test_location_outside_the_warehouse_is_refused(spark: SparkSession, bucket: str) -> None:
    """Signing stops at the table's location, as a vended credential does."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS signed.n")
    with pytest.raises(Py4JJavaError):
        spark.sql(f"CREATE TABLE signed.n.outside LOCATION 's3://{bucket}/elsewhere/t' AS SELECT 1 AS id")


def _ids(spark: SparkSession, source: str) -> list[int]:
    return [row[0] for row in spark.sql(f"SELECT id FROM {source} ORDER BY id").collect()]


def _remove_all_orphans(spark: SparkSession, table: str) -> list[str]:
    iceberg = spark._jvm.org.apache.iceberg.spark
    loaded = iceberg.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    by_prefix = True  # a positional argument: Java has no keywords
    action = iceberg.actions.SparkActions.get().deleteOrphanFiles(loaded).usePrefixListing(by_prefix)
    return list(action.olderThan(2**62).execute().orphanFileLocations())


def _location(spark: SparkSession, table: str) -> str:
    rows = {row[0]: row[1] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()}
    return rows["Location"]


def _client(sandbox: Sandbox, service: str) -> Any:
    return boto3.client(
        service,
        endpoint_url=sandbox.aws.endpoint,
        region_name=sandbox.aws.region,
        aws_access_key_id=sandbox.admin.access_key_id,
        aws_secret_access_key=sandbox.admin.secret_access_key.get_secret_value(),
    )


def _role(sandbox: Sandbox, bucket: str, external_id: str) -> str:
    trust = (
        '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", '
        f'"Principal": {{"AWS": "{sandbox.aws.catalog_principal_arn}"}}, '
        f'"Condition": {{"StringEquals": {{"sts:ExternalId": "{external_id}"}}}}}}]}}'
    )
    rights = (
        '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": '
        f'["arn:aws:s3:::{bucket}", "arn:aws:s3:::{bucket}/role/*"]}}]}}'
    )
    iam = _client(sandbox, "iam")
    role = iam.create_role(RoleName=bucket, Path="/lakewright/", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    iam.put_role_policy(RoleName=bucket, PolicyName="warehouse", PolicyDocument=rights)
    return role


def _warehouses(server: httpx.Client, project: str) -> list[dict[str, Any]]:
    return server.get("/management/v1/warehouse", headers={"x-project-id": project}).json()["warehouses"]


def _wait_for_purges(server: httpx.Client, project: str) -> None:
    """Wait for the catalog's background purge."""
    open_states = {"status": ["SCHEDULED", "RUNNING"]}
    for warehouse in _warehouses(server, project):
        tasks = f"/management/v1/warehouse/{warehouse['id']}/task/list"
        wait_until(lambda tasks=tasks: not server.post(tasks, json=open_states).json()["tasks"])
