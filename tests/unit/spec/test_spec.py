"""A tenant's spec: what is valid, and reports of all mistakes at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lakewright.explanation.json_schemas import schema_text
from lakewright.names.object_names import list_reserved_names
from lakewright.spec import SpecError, TenantSpec, parse_spec, read_stack_file
from lakewright.validation.yaml_text import load_yaml

from tests.schema_validator import make_validator

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[2]


def small(**changes: Any) -> dict[str, Any]:
    """Return the smallest spec, with other values."""
    spec: dict[str, Any] = {
        "version": 1,
        "environment": "sandbox",
        "name": "acme",
        "owner": "data@acme.example",
        "storage": {"main": {"backend": "aws", "bucket": "acme-lakehouse"}},
        "warehouses": [{"name": "executions"}],
    }
    return spec | changes


def mistakes(spec: Any) -> dict[str, str]:
    """Return the mistakes of a spec: path, and what was expected."""
    with pytest.raises(SpecError) as caught:
        parse_spec(spec, "the test's spec")
    return {problem.path: problem.expected for problem in caught.value.problems}


def test_complete_example_is_valid() -> None:
    spec = read_stack_file(HERE / "Pulumi.acme.yaml")

    assert spec.warehouse_names == ["executions", "curated"]
    assert spec.warehouses[0].namespace_paths[0] == "operator-port-result"
    assert spec.warehouses[1].namespace_paths == ["sales", "sales.daily", "ops"]
    assert spec.computing_units[0].visible_warehouses(spec.warehouse_names) == ["curated"]
    assert spec.computing_units[1].visible_warehouses(spec.warehouse_names) == ["executions", "curated"]
    assert [grant.to for grant in spec.grants] == ["role:analysts", "user:oidc~1f2e", "role:auditors"]


def test_retention_that_conflicts_with_its_table_is_refused() -> None:
    table: dict[str, Any] = {
        "name": "executions.sales.orders",
        "columns": [{"name": "day", "type": "date"}],
        "partition_by": ["months(day)"],
        "policies": {"retention": {"keep": 4, "column": "day"}},
    }
    warehouse = {"name": "executions", "namespaces": ["sales"]}

    problems = mistakes(small(warehouses=[warehouse], tables=[table]))

    assert "expected `unit: month`, as of the partitions of `day`; found `day`" in problems["tables.0"]
    table["policies"]["retention"]["unit"] = "month"
    spec = parse_spec(small(warehouses=[warehouse], tables=[table]), "spec")
    assert spec.tables[0].policies.properties() == {
        "lakewright.policy.retention": '{"keep": 4, "unit": "month", "column": "day", "backup": false}'
    }


def test_policies_of_a_pattern_are_checked_too() -> None:
    policies = [
        {"match": "executions.*.*", "history": {"versions": 1}},
        {"match": "nowhere.*.*", "sharing": True},
        {"match": "executions.orders", "sharing": True},
    ]

    assert list(mistakes(small(policies=policies))) == [
        "policies.0.history.versions",
        "policies.2.match",
        "policies.1.match",
    ]


def test_demo_tenant_is_valid() -> None:
    assert read_stack_file(REPOSITORY / "demo" / "Pulumi.demo.yaml").name == "demo"


def test_warehouses_that_differ_only_by_a_hyphen_are_refused() -> None:
    problems = mistakes(small(warehouses=[{"name": "raw-data"}, {"name": "Raw_Data"}, {"name": "raw"}]))

    assert problems == {
        "warehouses.1.name": "expected a name that differs from `raw-data` of warehouses.0 by more than `-` and `_`"
    }


def test_warehouses_with_one_name_of_standby_objects() -> None:
    warehouses = [{"name": "raw"}, {"name": "raw-"}]
    standby = {"config": {}, "warehouse": "copies", "egress": ["https://standby.example"]}

    problems = mistakes(small(warehouses=warehouses, maintenance={"standby": {"raw": standby, "raw-": standby}}))

    expected = "expected a name that differs from `raw` of warehouses.0 by more than `-` and `_`"
    assert problems["warehouses.1.name"] == expected
    assert "warehouses.1.name" not in mistakes(small(warehouses=warehouses, maintenance={"standby": {"raw": standby}}))
    assert parse_spec(small(warehouses=warehouses), "a spec without standbys").warehouses


@pytest.mark.parametrize(
    ("namespaces", "path", "expected"),
    [
        (
            ["Sales", "ops", "sales"],
            "warehouses.0.namespaces.2",
            "expected one spelling of namespace `sales`; warehouses.0.namespaces.0 has `Sales`",
        ),
        (
            ["A.x", "a.y"],
            "warehouses.0.namespaces.1",
            "expected one spelling of namespace `a`; warehouses.0.namespaces.0 has `A`",
        ),
        (
            {"preset": "texera", "also": ["Operator-Port-Result"]},
            "warehouses.0.namespaces.also.0",
            "expected one spelling of namespace `Operator-Port-Result`; warehouses.0.namespaces.preset has"
            " `operator-port-result`",
        ),
    ],
)
def test_namespaces_that_differ_only_in_case(namespaces: Any, path: str, expected: str) -> None:
    problems = mistakes(small(warehouses=[{"name": "executions", "namespaces": namespaces}]))

    assert problems == {path: f"{expected}, and Lakekeeper ignores case"}


def test_repeated_namespaces_and_parents_are_allowed() -> None:
    namespaces = ["sales.daily", "sales", "sales.weekly", "sales"]

    spec = parse_spec(small(warehouses=[{"name": "executions", "namespaces": namespaces}]), "spec")

    assert spec.warehouses[0].namespace_paths == ["sales", "sales.daily", "sales.weekly"]


def test_all_mistakes_are_reported_with_their_paths() -> None:
    problems = mistakes(
        {
            "version": 2,
            "environment": "sandbox",
            "name": "Acme Inc",
            "colour": "blue",
            "storage": {
                "main": {"backend": "aws", "bucket": "NO", "encryption": {"kms": "always"}},
                "other": {"backend": "hdfs"},
                "store": {
                    "backend": "s3",
                    "bucket": "store",
                    "endpoint": "ftp://store",
                    "credential": {"access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": "env:SECRET"},
                },
            },
            "warehouses": [
                {"name": "one", "storage": "main", "key_prefix": "data"},
                {"name": "ONE", "storage": "main", "key_prefix": "data/new/", "delegation": "maybe"},
                {"name": "two words", "storage": "nowhere", "soft_delete_days": 0},
                {"name": "four", "namespaces": ["ok", "system.x"]},
            ],
            "computing_units": [
                {
                    "name": "cu",
                    "runtime": "flink",
                    "warehouse": "five",
                    "size": {"memory": "1Gi", "shm": "2Gi", "cpu": "many"},
                },
                {"name": "both", "runtime": "spark", "warehouse": "one", "warehouses": "all"},
            ],
        }
    )

    assert set(problems) == {
        "version",
        "name",
        "owner",
        "colour",
        "storage.main.bucket",
        "storage.main.encryption.kms",
        "storage.other.backend",
        "storage.store.endpoint",
        "storage.store.credential.access_key_id",
        "warehouses.1.name",
        "warehouses.1.key_prefix",
        "warehouses.1.delegation",
        "warehouses.2.name",
        "warehouses.2.storage",
        "warehouses.2.soft_delete_days",
        "warehouses.3.storage",
        "warehouses.3.namespaces.1",
        "computing_units.0.runtime",
        "computing_units.0.warehouse",
        "computing_units.0.size.cpu",
        "computing_units.0.size.shm",
        "computing_units.1",
    }
    assert "expected one of version, name, owner" in problems["colour"]
    assert "there is no `five`" in problems["computing_units.0.warehouse"]
    assert "overlaps `data` of warehouses.0" in problems["warehouses.1.key_prefix"]


def test_secret_instead_of_a_reference_is_not_repeated() -> None:
    store = {
        "backend": "s3",
        "bucket": "store",
        "endpoint": "https://store.example",
        "credential": {"access_key_id": "env:ID", "secret_access_key": "hunter2-hunter2"},
    }

    with pytest.raises(SpecError) as caught:
        parse_spec(small(storage={"main": store}), "spec")

    assert "hunter2" not in str(caught.value)
    assert "storage.main.credential.secret_access_key" in str(caught.value)


@pytest.mark.parametrize(
    ("prefixes", "overlap"),
    [
        (("a", "b"), False),
        (("a", "a"), True),
        (("a", "a/b"), True),
        (("a/b", "a"), True),
        (("a", "ab"), False),
        (("a/", "/a"), True),
    ],
)
def test_prefixes_overlap_as_directories_do(prefixes: tuple[str, str], *, overlap: bool) -> None:
    spec = small(warehouses=[{"name": f"w{n}", "key_prefix": prefix} for n, prefix in enumerate(prefixes)])

    if overlap:
        assert list(mistakes(spec)) == ["warehouses.1.key_prefix"]
    else:
        parse_spec(spec, "spec")


def test_default_prefix_counts_as_a_prefix() -> None:
    assert list(mistakes(small(warehouses=[{"name": "a"}, {"name": "b", "key_prefix": "acme"}]))) == [
        "warehouses.1.key_prefix"
    ]


def test_default_prefix_has_the_first_name_of_a_warehouse() -> None:
    renamed = {"name": "b", "renamed_from": "a"}

    parse_spec(small(warehouses=[renamed, {"name": "c", "key_prefix": "acme/b"}]), "spec")
    problems = mistakes(small(warehouses=[renamed, {"name": "c", "key_prefix": "acme/a"}]))

    assert list(problems) == ["warehouses.1.key_prefix"]


@pytest.mark.parametrize("name", sorted(list_reserved_names("acme")))
def test_unit_cannot_have_the_name_of_another_object(name: str) -> None:
    """A NetworkPolicy of a unit named `deny-all` replaced the one that closes the namespace."""
    unit = {"name": name, "runtime": "spark", "warehouse": "executions"}

    problems = mistakes(small(computing_units=[unit]))

    expected = f"expected another name; `{name}` is reserved for an object of the tenant"
    assert problems == {"computing_units.0.name": expected}


def test_unit_cannot_have_the_name_of_a_configuration() -> None:
    units = [{"name": name, "runtime": "spark", "warehouse": "executions"} for name in ("cu", "cu-catalog")]

    assert list(mistakes(small(computing_units=units))) == ["computing_units.1.name"]


def test_role_name_that_iam_refuses() -> None:
    problems = mistakes(small(name="a" * 32, warehouses=[{"name": "w" * 21}, {"name": "w" * 20}]))

    assert list(problems) == ["warehouses.0.name"]
    assert "has 65 characters, and IAM allows 64" in problems["warehouses.0.name"]


def test_long_name_without_a_role_of_the_stack_is_allowed() -> None:
    storage = {
        "backend": "existing",
        "bucket": "own",
        "region": "us-east-1",
        "role_arn": "arn:aws:iam::111122223333:role/r",
    }
    renamed = {"name": "w" * 40, "renamed_from": "w"}

    parse_spec(small(name="a" * 40, storage={"own": storage}, warehouses=[{"name": "w" * 40}]), "spec")
    parse_spec(small(name="a" * 40, warehouses=[renamed]), "spec")


@pytest.mark.parametrize("region", ["cn-north-1", "us-gov-west-1", "us-iso-east-1"])
@pytest.mark.parametrize("backend", ["aws", "existing"])
def test_vended_credentials_are_refused_outside_aws(region: str, backend: str) -> None:
    """Session policies of Lakekeeper name `arn:aws` in every partition."""
    storage = {"backend": backend, "bucket": "lakehouse", "region": region}
    storage |= {"role_arn": "arn:aws-cn:iam::111122223333:role/r"} if backend == "existing" else {}

    problems = mistakes(small(storage={"main": storage}))

    assert list(problems) == ["warehouses.0.delegation"]
    assert problems["warehouses.0.delegation"].startswith(f"expected `remote-signing`: region {region} is in partition")
    parse_spec(small(storage={"main": storage}, warehouses=[{"name": "w", "delegation": "remote-signing"}]), "spec")


def test_store_without_sts_cannot_vend() -> None:
    store = {
        "backend": "s3",
        "bucket": "store",
        "endpoint": "https://store.example",
        "credential": {"access_key_id": "env:ID", "secret_access_key": "env:SECRET"},
        "sts": False,
    }

    assert "remote-signing" in mistakes(small(storage={"main": store}))["warehouses.0.delegation"]
    parse_spec(small(storage={"main": store}, warehouses=[{"name": "w", "delegation": "remote-signing"}]), "spec")


@pytest.mark.parametrize("nonsense", [None, "text", 3, [], ["a"]])
def test_document_that_is_no_mapping_is_reported(nonsense: Any) -> None:
    assert list(mistakes(nonsense)) == [""]


_documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "name",
                    "storage",
                    "warehouses",
                    "computing_units",
                    "key_prefix",
                    "size",
                    "grants",
                    "on",
                    "tables",
                    "main",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(_documents)
def test_no_document_makes_the_checks_fail(document: Any) -> None:
    with pytest.raises(SpecError):
        parse_spec(document, "spec")


def test_yaml_is_read_as_by_the_pulumi_cli(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.t.yaml"
    file.write_text(
        "config:\n  lakewright:tenant:\n    version: 1\n    environment: sandbox\n    name: yes\n    owner: on\n"
        "    storage: {main: {backend: aws, bucket: bbb}}\n    warehouses: [{name: 2026-01-01, protected: true}]\n"
    )

    spec = read_stack_file(file)

    assert (spec.name, spec.owner, spec.warehouses[0].name) == ("yes", "on", "2026-01-01")
    assert spec.warehouses[0].protected is True


def test_published_schema_is_up_to_date() -> None:
    published = REPOSITORY / "docs" / "schema" / "tenant.schema.json"

    assert published.read_text(encoding="utf-8") == schema_text(), "run `make schema`"


@pytest.mark.parametrize("file", ["demo/Pulumi.demo.yaml", "tests/unit/spec/Pulumi.acme.yaml"])
def test_published_schema_accepts_examples_and_finds_mistakes(file: str) -> None:
    schema = make_validator(json.loads(schema_text()))
    example = load_yaml((REPOSITORY / file).read_text())
    mistaken = load_yaml((REPOSITORY / file).read_text())
    mistaken["config"]["lakewright:tenant"]["warehouses"][0]["colour"] = "blue"

    assert [*schema.iter_errors(example)] == []
    assert "colour" in "".join(error.message for error in schema.iter_errors(mistaken))


def test_every_key_of_the_spec_is_described() -> None:
    schema = json.loads(schema_text())

    assert set(schema["$defs"]["TenantSpec"]["properties"]) == set(TenantSpec.model_fields)
    assert schema["$defs"]["WarehouseSpec"]["properties"]["deletion"]["description"]


def test_rename_needs_an_undeclared_old_name() -> None:
    renamed = [{"name": "a"}, {"name": "b", "renamed_from": "a"}, {"name": "c", "renamed_from": "z"}]

    problems = mistakes(small(warehouses=[*renamed, {"name": "d", "renamed_from": "z"}], dropped_warehouses=["c", "z"]))

    assert problems == {
        "warehouses.1.renamed_from": "expected a name that is no longer declared; `a` is",
        "warehouses.3.renamed_from": "expected one new name for `z`; `c` is renamed from it, too",
        "dropped_warehouses.0": "expected a removed warehouse; `c` is still declared",
        "dropped_warehouses.1": "expected a removed warehouse; it is `c` now",
    }
    parse_spec(small(warehouses=[{"name": "b", "renamed_from": "a"}], dropped_warehouses=["z"]), "spec")
