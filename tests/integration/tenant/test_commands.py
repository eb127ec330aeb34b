"""Commands around a tenant: create a spec, validate specs, print a job's configuration."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from lakewright.spec import read_stack_file
from lakewright_spark.catalog import CatalogConfig

from tests.command_server import run_command
from tests.real_servers import leave_out

pytestmark = pytest.mark.timeout(300)


@pytest.mark.stand_in("writes a tenant on AWS, which the sandbox plays")
def test_new_tenant_is_valid_and_never_overwrites(make_tenant: Callable[..., Any]) -> None:
    tenant = make_tenant()
    command = ("new", "acme", "--owner", "data@acme.example", "--preset", "texera", "--computing-unit", "texera")

    assert _run(tenant, *command).returncode == 0
    spec = read_stack_file(tenant.folder / "tenants" / "Pulumi.acme.yaml")
    second_run = _run(tenant, *command)

    assert spec.warehouses[0].namespace_paths[0] == "operator-port-result"
    assert spec.computing_units[0].runtime == "texera"
    assert second_run.returncode == 2
    assert "exists already" in second_run.stderr
    assert _run(tenant, "spec", "validate").returncode == 0


@pytest.mark.parametrize(
    ("options", "backend"),
    [
        (["--backend", "s3", "--endpoint", "https://store.example"], "s3"),
        (
            ["--backend", "existing", "--region", "eu-west-1", "--role-arn", "arn:aws:iam::111122223333:role/acme"],
            "existing",
        ),
    ],
)
def test_new_tenant_may_bring_its_storage(make_tenant: Callable[..., Any], options: list[str], backend: str) -> None:
    tenant = make_tenant()

    completed = _run(tenant, "new", "acme", "--owner", "acme", *options)

    assert completed.returncode == 0, completed.stderr
    assert read_stack_file(tenant.folder / "tenants" / "Pulumi.acme.yaml").storage["main"].backend == backend


def test_new_tenant_may_name_its_role_later(make_tenant: Callable[..., Any]) -> None:
    tenant = make_tenant()

    completed = _run(tenant, "new", "acme", "--owner", "acme", "--backend", "existing", "--region", "eu-west-1")

    assert completed.returncode == 0, completed.stderr
    assert "lakewright byo reserve acme" in completed.stdout
    assert "role_arn" not in (tenant.folder / "tenants" / "Pulumi.acme.yaml").read_text()


def test_invalid_new_tenant_is_not_written(make_tenant: Callable[..., Any]) -> None:
    tenant = make_tenant()

    completed = _run(tenant, "new", "acme", "--owner", "acme", "--backend", "ftp", "--warehouse", "a b")

    assert completed.returncode == 1
    assert "storage.main.backend" in completed.stderr
    assert "warehouses.0.name" in completed.stderr
    assert not (tenant.folder / "tenants" / "Pulumi.acme.yaml").exists()


def test_new_without_owner_and_terminal_is_an_error(make_tenant: Callable[..., Any]) -> None:
    completed = _run(make_tenant(), "new", "acme")

    assert completed.returncode == 2
    assert "owner" in completed.stderr


def test_validate_reports_every_mistake_of_every_file(make_tenant: Callable[..., Any]) -> None:
    tenant = make_tenant(colour="blue")
    (tenant.folder / "tenants" / "Pulumi.broken.yaml").write_text("config: [")

    completed = _run(tenant, "spec", "validate")

    assert completed.returncode == 1
    assert "colour: unknown key" in completed.stderr
    assert "Pulumi.broken.yaml" in completed.stderr
    assert "Traceback" not in completed.stderr


def test_validate_refuses_an_unknown_environment(make_tenant: Callable[..., Any]) -> None:
    completed = _run(make_tenant(environment="sandbx"), "spec", "validate")

    assert completed.returncode == 1
    assert "sandbx.yaml: there is no such environment" in completed.stderr
    assert "has: sandbox" in completed.stderr


def test_validate_refuses_settings_that_the_environment_forbids(make_tenant: Callable[..., Any]) -> None:
    tenant = make_tenant(identity={"client_id": "acme", "subject": "1"})
    if _has_tokens(tenant):
        leave_out("needs an environment without tokens")

    completed = _run(tenant, "spec", "validate")

    assert completed.returncode == 1
    assert "identity: expected an environment with `lakekeeper.jobs_auth`" in completed.stderr


def test_validate_refuses_a_program_that_reads_nothing(make_tenant: Callable[..., Any]) -> None:
    tenant = make_tenant()
    (tenant.folder / "__main__.py").write_text("import pulumi\n")

    completed = _run(tenant, "spec", "validate")

    assert completed.returncode == 1
    assert "Pulumi.yaml" in completed.stderr
    assert "`up` would make nothing" in completed.stderr


def test_project_may_have_another_name(make_tenant: Callable[..., Any]) -> None:
    tenant = make_tenant()
    project = tenant.folder / "Pulumi.yaml"
    project.write_text(project.read_text().replace("name: lakewright", "name: tenants-of-acme"))
    tenant.output("stack", "init")

    assert _run(tenant, "spec", "validate").returncode == 0
    assert tenant.verb("preview")["changes"]["create"] > 5


def test_spec_without_a_role_yet_is_valid(make_tenant: Callable[..., Any]) -> None:
    storage = {"backend": "existing", "bucket": "acme-own", "region": "us-west-2"}
    tenant = make_tenant(storage={"main": storage})

    completed = _run(tenant, "spec", "validate")

    assert completed.returncode == 0, completed.stderr
    assert "storage.main.role_arn: name the role before `up`; `lakewright byo reserve`" in completed.stdout
    refused = tenant.run("preview", "--engine", "embedded")
    assert "storage.main.role_arn: required" in refused.stderr + refused.stdout
    assert "to create" not in refused.stdout
    assert "Nothing is planned" in refused.stdout


@pytest.mark.skipif(
    os.environ.get("TEST_LAKEKEEPER_VERSION") == "0.14", reason="Lakekeeper 0.14 stores grants without OpenFGA"
)
def test_preview_refuses_grants_that_no_server_stores(make_tenant: Callable[..., Any]) -> None:
    grant = {"to": "user:oidc~ann", "privilege": "select", "on": {"warehouse": "executions"}}

    tenant = make_tenant(grants=[grant])
    if _has_tokens(tenant):
        leave_out("needs a server without grants")
    error = tenant.error("preview", "--engine", "embedded")

    assert "stores no grants: it runs Lakekeeper 0.1" in error


def test_validate_warns_of_protected_purges(make_tenant: Callable[..., Any]) -> None:
    """The spec is valid, and `protected` wins. A table inherits the `deletion` of its warehouse."""
    columns = [{"name": "n", "type": "long"}]
    tenant = make_tenant(
        warehouses=[
            {"name": "executions", "namespaces": ["results"], "deletion": "purge", "protected": True},
            {"name": "other", "namespaces": ["results"], "deletion": "protect", "protected": True},
        ],
        tables=[
            {"name": "executions.results.a", "columns": columns, "protected": True},
            {"name": "other.results.b", "columns": columns, "protected": True},
        ],
    )

    completed = _run(tenant, "spec", "validate")
    report = json.loads(_run(tenant, "spec", "validate", "--json").stdout)

    assert completed.returncode == 0
    assert "warehouses.0.protected: `protected: true` overrides `deletion: purge`" in completed.stderr
    warned = [warning["path"] for warning in report["files"][0]["warnings"]]
    assert warned == ["warehouses.0.protected", "tables.0.protected"]


def test_schema_prints_a_json_schema(make_tenant: Callable[..., Any]) -> None:
    assert "TenantSpec" in json.loads(_run(make_tenant(), "spec", "schema").stdout)["$defs"]


def test_job_configuration_in_four_forms(make_tenant: Callable[..., Any]) -> None:
    """The configuration comes from the stack's outputs."""
    tenant = make_tenant()
    if _has_tokens(tenant):
        leave_out("needs an environment without tokens")
    before = tenant.run("config", "--format", "json")
    outputs = tenant.up()["outputs"]

    assert before.returncode == 2
    assert "lakewright up" in before.stderr
    config = CatalogConfig.from_json(tenant.output("config", "--format", "json"))
    assert config.model_dump(mode="json") == outputs["catalog_config"]
    lines = tenant.output("config", "--format", "spark").splitlines()
    assert dict(line.split(" ", 1) for line in lines) == config.spark_properties()
    assert tenant.output("config", "--format", "pyiceberg").strip() == config.pyiceberg_yaml().strip()
    script = tenant.output("config", "--format", "env") + '\necho "$PYICEBERG_CATALOG__EXECUTIONS__WAREHOUSE"'
    echoed = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout
    assert echoed.strip() == f"{tenant.name}/executions"
    assert tenant.run("config", "--format", "toml").returncode == 2


def _has_tokens(tenant: Any) -> bool:
    """Return whether the user's server requires tokens, under `make test-real`."""
    return tenant.real is not None and tenant.real.token_url is not None


def _run(tenant: Any, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command that is not about the tenant's stack."""
    return run_command(arguments, tenant.folder, os.environ)
