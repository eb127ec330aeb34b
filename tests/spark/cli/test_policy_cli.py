"""`lakewright-spark policy` on a real catalog: show, set, unset, and refusals that change nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.cli import app
from lakewright_spark.errors import LakewrightSparkError, NoSuchResultError, PolicyRefusedError
from lakewright_spark.policies.model import PolicyPattern
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform
from pyiceberg.types import NestedField, StringType, TimestamptzType
from typer.testing import CliRunner

SCHEMA = Schema(
    NestedField(1, "ts", TimestamptzType(), required=False),
    NestedField(2, "email", StringType(), required=False),
)
BY_DAY = PartitionSpec(PartitionField(source_id=1, field_id=1000, transform=DayTransform(), name="ts_day"))
PATTERN = PolicyPattern.model_validate({"match": "results.policies.*", "history": {"versions": 5}})


@pytest.fixture
def config(catalog_config: CatalogConfig, tmp_path: Path) -> Path:
    """Create table `policies.events.v1`, partitioned by day of `ts`, and a pattern that matches it."""
    catalog = open_catalog(catalog_config, "results")
    catalog.create_namespace_if_not_exists("policies")
    catalog.create_table(("policies", "events.v1"), SCHEMA, partition_spec=BY_DAY)
    path = tmp_path / "catalog.json"
    path.write_text(catalog_config.model_copy(update={"policies": (PATTERN,)}).to_json())
    yield path
    catalog.drop_table(("policies", "events.v1"))


def policy(config: Path, *arguments: str) -> str:
    done = CliRunner().invoke(app, ["policy", *arguments, "--config", str(config)])
    if isinstance(done.exception, LakewrightSparkError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def policies_of_table(config: Path) -> dict[str, object]:
    return json.loads(policy(config, "show", "policies.`events.v1`", "--json"))["policies"]


def test_table_policy_overrides_pattern_until_unset(config: Path) -> None:
    assert policies_of_table(config) == {"history": {"value": {"versions": 5}, "from": "results.policies.*"}}
    policy(config, "set", "policies.`events.v1`", "history", '{"max_age_days": 2}')
    policy(config, "set", "policies.`events.v1`", "column-tags", '{"email": ["PII"]}')
    assert policies_of_table(config) == {
        "history": {"value": {"max_age_days": 2}, "from": "the table"},
        "column-tags": {"value": {"email": ["PII"]}, "from": "the table"},
    }
    assert "results.policies.*" not in policy(config, "show", "policies.`events.v1`")
    assert "is unset" in policy(config, "unset", "policies.`events.v1`", "history")
    assert "was not set" in policy(config, "unset", "policies.`events.v1`", "history")
    assert policies_of_table(config)["history"] == {"value": {"versions": 5}, "from": "results.policies.*"}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("retention", '{"keep": 3, "column": "ts", "unit": "hour"}', "expected `unit: day`"),
        ("retention", '{"keep": 3, "column": "email", "pattern": ""}', "expected no `pattern`"),
        ("retention", '{"keep": 0, "column": "ts"}', "retention.keep: Input should be greater than or equal to 1"),
        ("compaction", '{"strategy": "sort", "columns": ["name"]}', "there is no name"),
        ("history", "3 days", "expected JSON"),
        ("vacuum", "{}", "there is no policy 'vacuum'"),
    ],
)
def test_invalid_policy_changes_nothing(config: Path, name: str, value: str, expected: str) -> None:
    before = policies_of_table(config)
    with pytest.raises(PolicyRefusedError) as caught:
        policy(config, "set", "policies.`events.v1`", name, value)
    assert expected in str(caught.value)
    assert policies_of_table(config) == before


def test_pattern_with_tags_of_missing_columns(catalog_config: CatalogConfig, config: Path) -> None:
    """A pattern may apply to future tables, so `policy show` checks it against each table."""
    tags = {"match": "results.policies.*", "column_tags": {"email": ["PII"], "phone": ["HC"]}}
    config.write_text(catalog_config.model_copy(update={"policies": (PolicyPattern.model_validate(tags),)}).to_json())
    report = json.loads(policy(config, "show", "policies.`events.v1`", "--json"))
    assert report["policies"]["column-tags"]["value"] == {"email": ["PII"], "phone": ["HC"]}
    assert report["mistakes"] == ["column_tags: expected columns of the table, ts, email; there is no phone"]


def test_missing_table(config: Path) -> None:
    with pytest.raises(NoSuchResultError, match=r"has no table results.policies.nothing"):
        policy(config, "show", "policies.nothing")
