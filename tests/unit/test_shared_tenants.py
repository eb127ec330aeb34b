"""Stacks whose files declare what another stack has."""

from __future__ import annotations

from pathlib import Path

import pytest
from lakewright.cli.commands.operations import open_server_access
from lakewright.cli.ownership.declared_tenants import refuse_shared_tenant
from lakewright.spec import SpecError
from lakewright_engine.project.project import PulumiProject

SPEC = """config:
  lakewright:tenant:
    version: 1
    environment: production
    name: {name}
    owner: data@example.org
    storage: {{main: {{backend: aws, bucket: {name}-lakehouse, region: eu-west-1}}}}
    warehouses: [{{name: executions}}]
    computing_units:
    - {{name: spark, runtime: spark, warehouse: executions, identity: {{client_id: jobs, subject: {subject}}}}}
"""


def refusal(project: PulumiProject, stack: str) -> str:
    """Return why a stack is refused; nothing if it is not."""
    try:
        refuse_shared_tenant(open_server_access(project), stack)
    except SpecError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("theirs", "is_refused"), [("subject-1", True), ("subject-2", False)])
def test_client_of_another_tenant_is_refused(tmp_path: Path, theirs: str, *, is_refused: bool) -> None:
    """The tenants have nothing else in common."""
    (tmp_path / "Pulumi.yaml").write_text("name: lake\nruntime: python\n")
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "production.yaml").write_text("lakekeeper: {endpoint: 'https://lakekeeper.example'}\n")
    for name, subject in (("acme", "subject-1"), ("globex", theirs)):
        (tmp_path / f"Pulumi.{name}.yaml").write_text(SPEC.format(name=name, subject=subject))

    message = refusal(PulumiProject.load(tmp_path), "acme")

    assert ("expected a client that no other tenant uses" in message) is is_refused


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (SPEC.format(name="acme", subject="s").replace("owner:", "ownr:"), "whose spec has mistakes, declares tenant"),
        (SPEC.format(name="acme", subject="s") + "  broken: [", "may declare it, and cannot be read"),
        (SPEC.format(name="globex", subject="s") + "  broken: [", ""),
        (SPEC.format(name="acme-2", subject="s") + "  broken: [", ""),
        ("config: {lakewright:tenant: {name: globex, storage: {a: {backend: aws, bucket: acme-lakehouse}}}}", "bucket"),
    ],
    ids=["mistake", "no YAML", "another tenant", "longer name", "bucket"],
)
def test_file_with_mistakes_is_a_possible_owner(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: lake\nruntime: python\n")
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "production.yaml").write_text("lakekeeper: {endpoint: 'https://lakekeeper.example'}\n")
    (tmp_path / "Pulumi.acme.yaml").write_text(SPEC.format(name="acme", subject="subject-1"))
    (tmp_path / "Pulumi.other.yaml").write_text(text)

    message = refusal(PulumiProject.load(tmp_path), "acme")

    assert reason in message
    assert bool(message) is bool(reason)


def test_file_that_cannot_be_read_is_a_possible_owner(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: lake\nruntime: python\n")
    (tmp_path / "Pulumi.acme.yaml").write_text(SPEC.format(name="acme", subject="subject-1"))
    (tmp_path / "Pulumi.other.yaml").write_bytes(b"\xff\xfe")

    assert "Pulumi.other.yaml may declare it" in refusal(PulumiProject.load(tmp_path), "acme")


def test_place_from_defaults_is_compared(tmp_path: Path) -> None:
    """Neither stack file names the container."""
    storage = "{main: {backend: adls, account: acmestore, bucket: vault, credential: {account_key: 'config:key'}}}"
    (tmp_path / "Pulumi.yaml").write_text("name: lake\nruntime: python\n")
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "production.yaml").write_text("lakekeeper: {endpoint: 'https://lakekeeper.example'}\n")
    (tmp_path / "defaults").mkdir()
    (tmp_path / "defaults" / "azure.yaml").write_text(f"storage: {storage}\n")
    for name, prefix in (("acme", "finance"), ("globex", "finance/reports")):
        spec = f"version: 1, environment: production, name: {name}, owner: data@example.org, extends: [azure]"
        warehouses = f"warehouses: [{{name: executions, key_prefix: {prefix}}}]"
        text = f"config:\n  lakewright:tenant: {{{spec}, {warehouses}}}\n"
        (tmp_path / f"Pulumi.{name}.yaml").write_text(text)

    message = refusal(PulumiProject.load(tmp_path), "acme")

    assert "expected a place that no other stack uses" in message
