"""The YAML of the documentation is valid: specs and environments, each as a part of a whole one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from lakewright.environment.environment import Environment
from lakewright.environment.stack_file_check import check_stack_file
from lakewright.spec import TenantSpec
from lakewright.validation.documents import as_mapping
from lakewright.validation.yaml_text import load_yaml

REPOSITORY = Path(__file__).parents[3]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("[!.]*/**/*.md"))]
DIGEST = f"@sha256:{'0' * 64}"
WAREHOUSES = [{"name": name, "namespaces": ["results", "curated"]} for name in ("executions", "curated")]
ENVIRONMENT: dict[str, Any] = {
    "lakekeeper": {
        "endpoint": "https://lakekeeper.example",
        "principal_arn": "arn:aws:iam::123456789012:role/lakekeeper",
        "jobs_auth": {"kind": "token-file", "path": "/var/run/secrets/lakekeeper/token"},
    },
    "aws": {"region": "us-west-2"},
    "kubernetes": {
        "images": {"spark": f"registry.example/spark{DIGEST}"},
        "connect": {"issuer": {"name": "platform"}},
    },
    "directory": {
        "kind": "keycloak",
        "url": "https://idp.example",
        "realm": "platform",
        "client_id": "groups",
        "client_secret": "env:DIRECTORY",
    },
    "tenant_specs": {"references": ["config:", "env:"], "endpoints": ["https://minio.example:9000"]},
}
CLIENTS: dict[str, Any] = {
    "lakekeeper": {
        "jobs_auth": {
            "kind": "client-credentials",
            "token_url": "https://idp.example/token",
            "client_id": "jobs-{tenant}",
            "client_secret": "env:JOBS",
        }
    },
    "kubernetes": {"jobs_secret": {"name": "jobs", "key": "secret"}},
}
"""Settings for specs with a client of the tenant."""


PLACEHOLDERS = (("@sha256:...", DIGEST), ("    ca_certificates: |\n      -----BEGIN CERTIFICATE-----\n      ...", ""))
"""Texts of examples that are no values, and what stands for them here."""


def find_blocks() -> Iterator[tuple[str, str]]:
    """Yield the YAML of the pages, with a name for messages."""
    for page in PAGES:
        text = page.read_text("utf-8")
        for placeholder, value in PLACEHOLDERS:
            text = text.replace(placeholder, value)
        for number, block in enumerate(re.findall(r"```yaml.*?\n(.*?)\n *```", text, re.DOTALL), start=1):
            yield f"{page.name} {number}", block


BLOCKS = dict(find_blocks())
DOCUMENTS = {name: as_mapping(load_yaml(block)) for name, block in BLOCKS.items()}
SPECS = {
    name: as_mapping(as_mapping(document.get("config")).get("lakewright:tenant", document))
    for name, document in DOCUMENTS.items()
    if "lakewright:tenant" in as_mapping(document.get("config"))
    or (document and document.keys() <= {*TenantSpec.model_fields} and "# environments/" not in BLOCKS[name])
}
ENVIRONMENTS = {
    name: document
    for name, document in DOCUMENTS.items()
    if document and name not in SPECS and document.keys() <= {*Environment.model_fields}
}


def merge(base: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with a part merged into it. A variant with a `kind` is replaced as a whole."""
    merged = {**base, **part}
    for key in base.keys() & part.keys():
        if isinstance(base[key], dict) and "kind" not in part[key]:
            merged[key] = merge(base[key], part[key])
    return merged


def write_files(root: Path, spec: dict[str, Any], environment: dict[str, Any]) -> Path:
    """Write a project's files, and return that of the stack."""
    (root / "environments").mkdir()
    (root / "environments" / f"{spec['environment']}.yaml").write_text(yaml.safe_dump(environment))
    (root / "defaults").mkdir()
    (root / "defaults" / "base.yaml").write_text("labels: {team: data}\n")
    file = root / "Pulumi.acme.yaml"
    file.write_text(yaml.safe_dump({"config": {"lakewright:tenant": spec}}))
    return file


def test_pages_have_specs_and_environments() -> None:
    assert len(SPECS) > 12
    assert len(ENVIRONMENTS) > 7
    # Specs of platforms, alerts of Prometheus, a program in YAML, prices, and a file for docker compose.
    other_documents = {
        "platform.md 1",
        "texera.md 3",
        "drift-in-kubernetes.md 1",
        "drift-in-kubernetes.md 2",
        "ends.md 2",
        "limits.md 4",
        "component-package.md 1",
        "costs.md 1",
        "costs.md 2",
    }
    assert DOCUMENTS.keys() - SPECS.keys() - ENVIRONMENTS.keys() == other_documents


@pytest.mark.parametrize("name", SPECS)
def test_documented_spec_is_valid(name: str, tmp_path: Path) -> None:
    part = SPECS[name]
    base: dict[str, Any] = {
        "version": 1,
        "environment": "production",
        "name": "acme",
        "owner": "tests",
        "storage": {"main": {"backend": "aws", "bucket": "acme-lake"}},
        "warehouses": WAREHOUSES,
    }
    if "storage" in part:
        base["storage"] = {}
        store = next(iter(part["storage"]))
        base["warehouses"] = [{**warehouse, "storage": store} for warehouse in WAREHOUSES]
    if isinstance(part.get("identity"), dict):
        base["computing_units"] = [{"name": "cu", "runtime": "spark", "warehouse": "executions"}]
    if "checks" in part:
        base["grants"] = [{"to": "role:analysts", "privilege": "select", "on": {"warehouse": "executions"}}]
    environment = merge(ENVIRONMENT, CLIENTS if "identity" in part else {})

    checked = check_stack_file(write_files(tmp_path, merge(base, part), environment), tmp_path, {})

    missing = [note for note in checked.notes if "lakewright byo reserve" in note]
    assert bool(missing) == (name == "own-bucket.md 1")
    assert len(checked.notes) == len(missing)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_documented_environment_is_valid(name: str) -> None:
    part = {key: value for key, value in ENVIRONMENTS[name].items() if key != "platform"}
    clients = CLIENTS if "jobs_subject" in as_mapping(part.get("lakekeeper")) else {}
    Environment.model_validate(merge(merge(ENVIRONMENT, clients), part))
