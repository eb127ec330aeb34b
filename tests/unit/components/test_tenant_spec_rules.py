"""References to secrets and stores that a spec may use, as the environment lists them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lakewright.environment.environment import Environment
from lakewright.environment.stack_config import read_stack_config
from lakewright.environment.tenant_spec_rules import RuleCheck, TenantSpecRules
from lakewright.spec import SpecError, parse_spec
from pydantic import ValidationError

OWN = "env:LAKEWRIGHT_CLIENT_SECRET"
LAKEKEEPER = {
    "endpoint": "https://lakekeeper.example",
    "auth": {
        "kind": "client-credentials",
        "token_url": "https://idp.example/token",
        "client_id": "lakewright",
        "client_secret": OWN,
    },
}


def spec(endpoint: str = "https://store.example", key: str = "config:store_key", **store: Any) -> dict[str, Any]:
    """Return a tenant with a warehouse on an S3-compatible store."""
    credential = {"access_key_id": key, "secret_access_key": "config:store_secret"}
    storage = {"backend": "s3", "bucket": "store", "endpoint": endpoint, "credential": credential} | store
    return {
        "version": 1,
        "environment": "here",
        "name": "acme",
        "owner": "data@acme.example",
        "storage": {"main": storage},
        "warehouses": [{"name": "executions"}],
    }


def find_mistakes(folder: Path, document: dict[str, Any], **environment: Any) -> dict[str, str]:
    """Return the mistakes of a declaration: path, and what was expected."""
    # Every JSON document is also YAML.
    (folder / "here.yaml").write_text(json.dumps({"lakekeeper": LAKEKEEPER} | environment))
    try:
        read_stack_config(document, source="stack", environments=folder, environ={}, region=None)
    except SpecError as error:
        return {problem.path: problem.expected for problem in error.problems}
    return {}


def list_problem_paths(rules: TenantSpecRules, document: dict[str, Any]) -> list[str]:
    return [problem.path for problem in RuleCheck(rules, "here", [OWN]).problems(document)]


def test_deployers_secret_does_not_go_to_a_host_of_the_spec(tmp_path: Path) -> None:
    mistakes = find_mistakes(tmp_path, spec("https://evil.example", OWN))

    assert set(mistakes) == {"storage.main.endpoint", "storage.main.credential.access_key_id"}
    assert "`tenant_specs.endpoints`" in mistakes["storage.main.endpoint"]
    assert "environment here itself uses" in mistakes["storage.main.credential.access_key_id"]


def test_only_the_stack_configuration_by_default(tmp_path: Path) -> None:
    rules = {"endpoints": ["https://store.example"]}

    assert find_mistakes(tmp_path, spec(), tenant_specs=rules) == {}
    mistakes = find_mistakes(tmp_path, spec(key="env:HOME"), tenant_specs=rules)
    assert list(mistakes) == ["storage.main.credential.access_key_id"]
    assert "allows (`config:`), found `env:HOME`" in mistakes["storage.main.credential.access_key_id"]


@pytest.mark.parametrize(
    ("prefix", "reference", "allowed"),
    [
        ("env:STORE_", "env:STORE_KEY", True),
        ("env:STORE_", "env:HOME", False),
        ("env:", "env:HOME", True),
        ("env:", OWN, False),
        ("file:/run/stores/", "file:/run/stores/acme", True),
        ("file:/run/stores/", "file:/run/stores/../lakekeeper", False),
        ("vault:secret/data/{tenant}/", "vault:secret/data/acme/s3#key", True),
        ("vault:secret/data/{tenant}/", "vault:secret/data/other/s3#key", False),
        ("vault:secret/data/{tenant}/", "vault:secret/data/acme/../lakekeeper#key", False),
        ("vault:secret/data/", "vault:secret/data/acme?version=1#key", False),
        ("vault:secret/data/{tenant}/", "vault:secret/data/acme/%2e%2e/lakekeeper#key", False),
        ("vault:secret/data/", "vault:secret/data/l%61kekeeper#key", False),
        ("vault:", "vault:/secret/data//acme#key", False),
        ("file:~/stores/", f"file:{Path.home()}/stores/acme", True),
        (f"file:{Path.home()}/stores/", "file:~/stores/acme", True),
        ("file:", "file:/proc/self/environ", False),
        ("config:", "config:aws:secretKey", False),
        ("config:aws:", "config:aws:secretKey", True),
    ],
)
def test_references_by_prefix(prefix: str, reference: str, *, allowed: bool) -> None:
    rules = TenantSpecRules(references=[prefix, "config:store"], endpoints=["https://store.example"])

    assert list_problem_paths(rules, spec(key=reference)) == (
        [] if allowed else ["storage.main.credential.access_key_id"]
    )


@pytest.mark.parametrize(
    ("own_reference", "reference"),
    [
        ("config:lakekeeper", "config:lakekeeper"),
        ("config:lakekeeper", "config:lakewright:lakekeeper"),
        ("file:/run/secrets/own", "file:/run/./secrets//own"),
        ("vault:secret/data/own#a", "vault:/secret/data/own#b"),
        ("vault:secret/data/own#a", "vault:secret/data/own?x#b"),
        ("vault:secret/data/own#a", "vault:secret/data/%6fwn#b"),
        ("vault:secret/data/own#a", "vault:secret/data/x/%2e%2e/own#b"),
        ("file:~/own", f"file:{Path.home()}/own"),
        ("file:/run/secrets/own", "file:~/../../../../../run/secrets/own"),
        ("file:/run/secrets/own", "file:/proc/self/root/run/secrets/own"),
        (
            "aws-secretsmanager:arn:aws:secretsmanager:r:1:secret:own-AbCdEf",
            "aws-secretsmanager:arn:aws:secretsmanager:r:1:secret:own",
        ),
    ],
)
def test_environments_own_secret_in_another_spelling(own_reference: str, reference: str) -> None:
    everything = ["env:", "file:", "vault:", "config:", "config:lakewright:", "aws-secretsmanager:"]
    rules = TenantSpecRules(references=everything, endpoints=["https://store.example"])

    (problem,) = RuleCheck(rules, "here", [own_reference]).problems(spec(key=reference))

    assert "itself uses" in problem.expected


def test_files_of_the_environment_are_reserved(tmp_path: Path) -> None:
    """Token files and AWS's credentials are named by path, without a reference."""
    identities = {
        "auth": {"kind": "token-file", "path": "/run/token"},
        "jobs_auth": {"kind": "token-file", "path": "/jobs"},
    }
    server = {"endpoint": "https://lakekeeper.example"} | identities
    environment = {"lakekeeper": server, "aws": {"shared_credentials_file": "credentials"}}
    (tmp_path / "here.yaml").write_text(json.dumps(environment))

    references = Environment.load(tmp_path / "here.yaml", environ={}).own_references

    assert references == {"file:/run/token", "file:/jobs", f"file:{tmp_path / 'credentials'}"}


def test_external_id_is_a_reference_too() -> None:
    document = spec() | {"storage": {"own": {"backend": "existing", "external_id": "config:aws:secretKey"}}}

    assert list_problem_paths(TenantSpecRules(), document) == ["storage.own.external_id"]


@pytest.mark.parametrize(
    ("pattern", "endpoint", "allowed"),
    [
        ("https://store.example", "https://store.example/", True),
        ("https://Store.Example/", "https://store.example:443", True),
        ("https://store.example", "http://store.example", False),
        ("https://store.example", "https://store.example:9000", False),
        ("https://store.example:*", "https://store.example:9000", True),
        ("https://*.store.example", "https://eu.store.example", True),
        ("https://*.store.example", "https://store.example", False),
        ("https://*.store.example", "https://evilstore.example", False),
        ("https://*", "https://evil.elsewhere.example", True),
        ("https://*", "https://store.example", False),
        ("http://*:*", "http://vault.vault:8200", False),
        ("http://*:*", "http://minio.tenant-b:9000", False),
        ("http://*:*", "http://api.kube-system", False),
        ("https://*.example", "https://store.example", True),
        ("http://minio.tenant-b:9000", "http://minio.tenant-b:9000", True),
        ("http://*:*", "http://10.0.0.1.nip.io", False),
        ("http://*:*", "http://127.0.0.1.nip.io", False),
        ("http://*.nip.io:*", "http://127.0.0.1.nip.io", False),
        ("https://*", "https://10.1.2.3", False),
        ("https://10.1.2.3", "https://10.1.2.3", True),
        ("http://*:*", "http://minio.storage.svc:9000", False),
        ("http://*:*", "http://minio.storage.svc.cluster.local:9000", False),
        ("http://*:*", "http://localhost:9000", False),
        ("http://minio.storage.svc:9000", "http://minio.storage.svc:9000", True),
        ("http://127.0.0.1:*", "http://127.0.0.1:9000", True),
    ],
)
def test_endpoints_by_pattern(pattern: str, endpoint: str, *, allowed: bool) -> None:
    rules = TenantSpecRules(endpoints=[pattern])

    assert list_problem_paths(rules, spec(endpoint)) == ([] if allowed else ["storage.main.endpoint"])
    assert list_problem_paths(rules, spec(endpoint, sts_endpoint=endpoint))[1:] == (
        [] if allowed else ["storage.main.sts_endpoint"]
    )


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "[::ffff:169.254.169.254]",
        "[fd00:ec2::254]",
        "168.63.129.16",
        "metadata.google.internal",
        "%31%36%39.254.169.254",
        "\uff11\uff16\uff19.254.169.254",
    ],
)
def test_spec_may_not_name_metadata_services(host: str) -> None:
    document = spec(f"http://{host}/", sts_endpoint=f"http://{host}/sts")

    with pytest.raises(SpecError) as caught:
        parse_spec(document, "stack")

    assert [problem.path for problem in caught.value.problems] == ["storage.main.endpoint", "storage.main.sts_endpoint"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("endpoints", "http://169.254.169.254"),
        ("endpoints", "https://*.*.example"),
        ("endpoints", "https://store*.example"),
        ("endpoints", "store.example"),
        ("references", "env"),
        ("references", "password:x"),
        ("references", "file:/run/../etc/"),
    ],
)
def test_invalid_rules_are_refused(field: str, value: str) -> None:
    with pytest.raises(ValidationError):
        TenantSpecRules.model_validate({field: [value]})


def test_sandbox_lists_what_its_specs_may_name(tmp_path: Path) -> None:
    (tmp_path / "sb").mkdir()
    state = {
        "lakekeeper": {"endpoint": "http://127.0.0.1:1", "catalog_uri": "http://127.0.0.1:1/catalog"},
        "aws": {
            "endpoint": "http://127.0.0.1:2",
            "region": "us-east-1",
            "catalog_principal_arn": "arn:aws:iam::123456789012:user/lakekeeper",
        },
        "credentials_file": "credentials",
    }
    (tmp_path / "sb" / "sandbox.json").write_text(json.dumps(state))
    (tmp_path / "here.yaml").write_text("sandbox: sb\n")

    rules = Environment.load(tmp_path / "here.yaml", environ={}).tenant_specs

    assert rules.references == ["config:", "env:"]
    assert list_problem_paths(rules, spec("http://127.0.0.1:9000", "env:STORE_KEY")) == []
    assert list_problem_paths(rules, spec("https://store.example")) == ["storage.main.endpoint"]


@pytest.mark.parametrize(
    ("forbidden", "change", "path"),
    [
        ("adopt", {"adopt": True}, "adopt"),
        ("adopt", {"warehouses": [{"name": "executions"}, {"name": "results", "adopt": True}]}, "warehouses.1.adopt"),
        ("adopt", {"tables": [{"name": "executions.a.b", "adopt": True}]}, "tables.0.adopt"),
        ("project.id", {"project": {"id": "delta"}}, "project.id"),
    ],
)
def test_environment_forbids_a_field(forbidden: str, change: dict[str, Any], path: str) -> None:
    document = spec() | change
    rules: dict[str, Any] = {"endpoints": ["https://store.example"]}

    assert list_problem_paths(TenantSpecRules(**rules, forbid=[forbidden]), document) == [path]
    assert list_problem_paths(TenantSpecRules(**rules), document) == []


def test_forbidden_field_is_refused_before_any_call(tmp_path: Path) -> None:
    rules = {"endpoints": ["https://store.example"], "forbid": ["adopt", "project.id"]}

    mistakes = find_mistakes(tmp_path, spec() | {"adopt": True}, tenant_specs=rules)
    allowed = spec() | {"adopt": False, "project": {"name": "Acme"}}

    assert "environment here forbids taking over existing objects" in mistakes["adopt"]
    assert find_mistakes(tmp_path, allowed, tenant_specs=rules) == {}


@pytest.mark.parametrize(
    ("storage", "location"),
    [
        ({"backend": "adls", "account": "acmelake", "bucket": "acme"}, "adls:acmelake/{tenant}"),
        ({"backend": "gcs", "bucket": "acme-lake"}, "gcs:{tenant}-*"),
    ],
)
def test_identity_of_lakekeeper_needs_a_listed_location(tmp_path: Path, storage: dict[str, Any], location: str) -> None:
    """Lakekeeper's own identity reaches the data of all tenants, so a spec names a location only if it may."""
    document = spec() | {"storage": {"main": storage}}

    assert "Lakekeeper uses its own identity" in find_mistakes(tmp_path, document)["storage.main.credential"]
    assert not find_mistakes(tmp_path, document, tenant_specs={"identity_locations": [location]})
    other_mistakes = find_mistakes(
        tmp_path, document | {"name": "other"}, tenant_specs={"identity_locations": [location]}
    )
    assert set(other_mistakes) == {"storage.main.credential"}


@pytest.mark.parametrize("pattern", ["*", "s3:bucket", "adls:account", "gcs:a*b"])
def test_wide_identity_location_is_refused(pattern: str) -> None:
    with pytest.raises(ValidationError, match="expected `adls:ACCOUNT/CONTAINER` or `gcs:BUCKET`"):
        TenantSpecRules(identity_locations=[pattern])
