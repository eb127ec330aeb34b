"""Names and errors from servers that try to control a terminal or a CI system, through every command."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pyarrow as pa
import pytest
import yaml
from lakewright.cli import main
from lakewright_sandbox.runtime.state import Sandbox
from pyiceberg.catalog import Catalog

from tests.integration.tenant import faulty_proxy
from tests.integration.test_command_line import COMMANDS
from tests.tenant_project import PASSPHRASE, Tenant, create_project, new_name, tenant_spec
from tests.texera_server import TexeraServer, serve_texera

pytestmark = [pytest.mark.xdist_group("hostile-names"), pytest.mark.stand_in("creates objects with hostile names")]

HOSTILE = "x\x1b]52;c;cm0=\x07\x9b2k\u202e\n::stop-commands::t\nforged: all is well ##vso[task]y"
REFUSAL = json.dumps({"error": {"message": HOSTILE, "type": f"Bad{HOSTILE}", "code": 400, "stack": [HOSTILE]}})
ESCAPED = "\\u001b]52"

DEPLOYED = {
    "lakewright preview": "--stack {name} --refresh --diff --engine embedded",
    "lakewright up": "--stack {name} --preview-only --refresh --diff --engine embedded",
    "lakewright refresh": "--stack {name} --preview-only --diff --engine embedded",
    "lakewright destroy": "--stack {name} --preview-only --engine embedded",
    "lakewright plan show": "{folder}/it.plan.json --diff",
    "lakewright fleet preview": "--all --engine embedded --refresh --details",
    "lakewright fleet up": "--all --yes --engine embedded --refresh",
    "lakewright fleet refresh": "--all --yes --engine embedded",
    "lakewright fleet verify": "--all",
    "lakewright fleet drift": "--all",
    "lakewright fleet usage": "--all",
    "lakewright fleet runs": "--all",
    "lakewright fleet report": "--all --out {folder}/public --collect drift",
    "lakewright fleet list": "--unmanaged",
    "lakewright fleet status": "--all",
    "lakewright record-compute": "--all",
    "lakewright drift": "--all --unmanaged-tables",
    "lakewright stack output": "--stack {name}",
    "lakewright stack history": "--stack {name}",
    "lakewright stack export": "--stack {name}",
    "lakewright state ls": "--stack {name}",
    "lakewright config": "--stack {name}",
    "lakewright spec explain": "--stack {name}",
    "lakewright spec validate": "",
    "lakewright spec from-server": "--project {name} --name other --cwd {folder}/empty",
    "lakewright undrop": "--stack {name} --list",
    "lakewright byo check": "--stack {name}",
    "lakewright external-ids": "--stack {name}",
    "lakewright verify": "--stack {name}",
    "lakewright ci comment": "{folder}/preview.json",
    "lakewright ci summary": "{folder}/drift.json --format text",
    "lakewright ci publish": "{folder}/drift.json --textfile {folder}/drift.prom",
    "lakewright check": "--all",
    "lakewright report": "--all --out {folder}/public --from {folder}/drift.json",
    "lakewright doctor": "--stack {name}",
    "lakewright stack forget": "--stack {name}",
    "lakewright texera register": "--stack {name} --url {texera}",
    "lakewright grants": "--all",
    "lakewright expire": "--all",
    "lakewright enforce-limits": "--all",
    "lakewright adopt consent": "--stack {name} bucket={name}-lakehouse",
}
"""Options of the commands that print text from servers, states or reports."""

FLEET = "lakewright fleet "
"""Commands for many stacks print through the same streams as the commands for each stack."""

PRINTS_NO_SERVER_TEXT = {
    "lakewright stack ls",
    "lakewright stack init",
    "lakewright stack import",
    "lakewright stack rm",
    "lakewright stack select",
    "lakewright stack cancel",
    "lakewright state rm",
    "lakewright state unprotect",
    "lakewright state rename",
    "lakewright config get",
    "lakewright config set",
    "lakewright config rm",
    "lakewright init",
    "lakewright new",
    "lakewright upgrade",
    "lakewright spec schema",
    "lakewright byo reserve",
    "lakewright ci selection",
    "lakewright ci plans-run",
    "lakewright ci trust-policy",
    "lakewright ci dashboard",
    "lakewright ui",
    "lakewright completion",
    "lakewright sandbox up",
    "lakewright sandbox status",
    "lakewright sandbox down",
    "lakewright sandbox reset",
}
"""Commands that call no server of a tenant. Their output passes the same streams."""

SHOWS_OBJECTS = {
    "lakewright preview",
    "lakewright up",
    "lakewright refresh",
    "lakewright fleet drift",
    "lakewright fleet list",
    "lakewright drift",
    "lakewright spec from-server",
    "lakewright undrop",
    "lakewright ci summary",
}
"""Commands whose output names the hostile objects of the test."""

SNAKE_CASE = re.compile("[a-z][a-z0-9]*(_[a-z0-9]+)*")
KEYED_BY_NAMES = {
    "changes",
    "config",
    "counts",
    "declared",
    "environment",
    "found",
    "kinds",
    "labels",
    "options",
    "outputs",
}
"""Members of JSON documents whose keys are names, or whose values are documents of a server."""

JSON_OF_NAMES = {
    "lakewright stack output": "keys are names of the program",
    "lakewright external-ids": "keys are names of warehouses",
    "lakewright byo check": "the tenant has no bucket of its own",
}
"""Commands whose JSON keys are only names in this test, and the reason."""

ONE_LINE_EACH = {"lakewright fleet usage", "lakewright fleet runs", "lakewright fleet report"}
"""Commands that print the names of failed stacks, without the reasons."""


def assert_harmless(printed: str) -> None:
    """Fail if a terminal or a CI system would act on a text, or a line of it is forged."""
    assert not [char for char in printed if char in "\x1b\x07\x9b\x7f\r\u202e"], ascii(printed)
    for line in printed.split("\n"):
        assert not line.lstrip().startswith(("::", "forged")), ascii(printed)
        assert "##vso[" not in line, ascii(printed)


def has_json(path: str) -> bool:
    """Return whether a command has the option `--json`."""
    return any("--json" in parameter.opts for parameter in COMMANDS[path].params)


def find_keys(value: Any) -> Iterator[str]:
    """Yield the keys of a JSON document, without names from servers, specs or programs."""
    if isinstance(value, list):
        for item in value:
            yield from find_keys(item)
    elif isinstance(value, dict):
        yield from value
        for key, item in value.items():
            if key not in KEYED_BY_NAMES:
                yield from find_keys(item)


@pytest.fixture(scope="module")
def proxy(sandbox: Sandbox) -> Iterator[faulty_proxy.FaultyProxy]:
    with faulty_proxy.run_proxy(sandbox.lakekeeper.endpoint) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def hostile_tenant(
    tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox, proxy: faulty_proxy.FaultyProxy
) -> Tenant:
    """A deployed tenant. Another user gave hostile texts to its objects, and created objects with hostile names."""
    folder = tmp_path_factory.mktemp("hostile") / "project"
    environment = {"sandbox": str(sandbox.dir), "kubernetes": {"render_to": str(folder / "rendered")}}
    create_project(folder, environment | {"lakekeeper": {"endpoint": proxy.endpoint}})
    name = new_name()
    spec = tenant_spec(name, {"backend": "aws", "bucket": f"{name}-lakehouse"})
    spec["computing_units"] = [
        {"name": "unit", "runtime": "spark", "warehouses": "all"},
        {"name": "workflows", "runtime": "texera", "warehouses": "all"},
    ]
    spec["warehouses"][0]["soft_delete_days"] = 7
    columns = [{"name": "id", "type": "long"}]
    spec["tables"] = [{"name": "executions.results.runs", "columns": columns, "properties": {"owner": "jobs"}}]
    spec["checks"] = [{"table": "executions.results.orders", "min_rows": 1}]
    tenant = Tenant(folder, sandbox, spec)
    tenant.write()
    tenant.output("stack", "init")
    tenant.up()
    catalog = tenant.catalog("executions")
    catalog.create_table(("results", HOSTILE), schema=pa.schema([("n", pa.int64())]))
    catalog.create_table("results.orders", schema=pa.schema([(HOSTILE, pa.int64())]))
    catalog.drop_table(("results", HOSTILE))
    catalog.create_table(("results", f"live{HOSTILE}"), schema=pa.schema([("n", pa.int64())]))
    catalog.create_namespace((f"ns{HOSTILE}",))
    warehouse = tenant.catalog_config().warehouse("executions").id
    with httpx.Client(base_url=sandbox.lakekeeper.endpoint, headers={"x-project-id": name}) as http:
        role = {"name": f"role{HOSTILE}", "description": HOSTILE, "project-id": name}
        http.post("/management/v1/role", json=role).raise_for_status()
        properties = {"updates": {"owner": HOSTILE, f"key{HOSTILE}": "1"}}
        http.post(f"/catalog/v1/{warehouse}/namespaces/results/properties", json=properties).raise_for_status()
    create_project(folder / "empty", yaml.safe_load((folder / "environments" / "sandbox.yaml").read_text()))
    (folder / "empty" / "Pulumi.yaml").write_text("name: empty\nruntime: python\nstackConfigDir: tenants\n")
    change_table(catalog)
    previewed = tenant.run("fleet", "preview", "--refresh", "--engine", "embedded", "--json")
    (folder / "preview.json").write_text(previewed.stdout)
    (folder / "drift.json").write_text(tenant.run("drift", "--unmanaged-tables", "--json").stdout)
    tenant.output("preview", "--save-plan", str(folder / "it.plan.json"), "--engine", "embedded")
    return tenant


def change_table(catalog: Catalog) -> None:
    """Give a declared property of a table a hostile value that no state has."""
    with catalog.load_table("results.runs").transaction() as changing:
        changing.set_properties(owner=f"{HOSTILE}{uuid4().hex}")


@pytest.fixture(scope="module")
def catalog(hostile_tenant: Tenant) -> Catalog:
    return hostile_tenant.catalog("executions")


@pytest.fixture(scope="module")
def texera() -> Iterator[TexeraServer]:
    """A Texera whose user has a unit with a hostile name."""
    with serve_texera() as server:
        server.created.append({"name": HOSTILE, "uri": HOSTILE})
        yield server


@pytest.fixture
def call(
    hostile_tenant: Tenant,
    catalog: Catalog,
    texera: TexeraServer,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    """Return a function that runs a command in this process, and returns its output."""
    change_table(catalog)
    monkeypatch.chdir(hostile_tenant.folder)
    monkeypatch.setenv("PULUMI_BACKEND_URL", (hostile_tenant.folder / "state").as_uri())
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
    monkeypatch.setenv("TEXERA_TOKEN", "token")
    monkeypatch.setattr(sys, "stdin", open(os.devnull))  # noqa: PTH123, SIM115

    def run(path: str, options: str) -> str:
        values = {"name": hostile_tenant.name, "folder": hostile_tenant.folder, "texera": texera.url}
        arguments = [*path.split()[1:], *options.format(**values).split()]
        with pytest.raises(SystemExit):
            main(arguments)
        captured = capfd.readouterr()
        assert "Traceback" not in captured.err
        return captured.out + captured.err

    return run


def test_each_command_is_tried() -> None:
    commands = {path for path in COMMANDS if path.startswith("lakewright ")}

    assert commands == {*DEPLOYED} | PRINTS_NO_SERVER_TEXT


@pytest.mark.parametrize(
    "path", [pytest.param(path, marks=pytest.mark.long if path.startswith(FLEET) else ()) for path in DEPLOYED]
)
def test_hostile_names_are_escaped(path: str, call: Any) -> None:
    printed = call(path, DEPLOYED[path])

    assert_harmless(printed)
    assert path not in SHOWS_OBJECTS or ESCAPED in printed, printed


@pytest.mark.long
@pytest.mark.parametrize("path", DEPLOYED)
def test_hostile_refusals_are_escaped(path: str, call: Any, proxy: faulty_proxy.FaultyProxy) -> None:
    with proxy.faulty("", 400, REFUSAL) as fault:
        printed = call(path, DEPLOYED[path])

    assert_harmless(printed)
    assert not fault.hits or path in ONE_LINE_EACH or ESCAPED in printed, printed


def test_hostile_names_remain_values_in_json(call: Any) -> None:
    printed = call("lakewright drift", "--all --unmanaged-tables --json")

    document = json.loads(printed.partition("\n}")[0] + "\n}")
    live_values = [entry["found"] for entry in document["stacks"][0]["differences"] if entry["property"]]
    owners = [entry["owner"] for entry in live_values if isinstance(entry, dict)]
    assert [owner.startswith(HOSTILE) for owner in owners] == [True]
    assert_harmless(printed)


@pytest.mark.long
@pytest.mark.parametrize("path", [path for path in DEPLOYED if has_json(path) and path not in JSON_OF_NAMES])
def test_json_keys_are_snake_case(path: str, call: Any) -> None:
    printed = call(path, f"{DEPLOYED[path]} --json")

    document, _ = json.JSONDecoder().raw_decode(printed)
    assert [key for key in find_keys(document) if not SNAKE_CASE.fullmatch(key)] == []


@pytest.mark.long
def test_heal_announces_hostile_names_escaped(hostile_tenant: Tenant, catalog: Catalog, call: Any) -> None:
    hostile_tenant.up()  # a refresh of another test may have taken a hostile value into the state
    change_table(catalog)

    printed = call("lakewright drift", "--all --heal --yes")

    announced = [line for line in printed.splitlines() if "will be reverted" in line]
    assert_harmless(printed)
    assert any("]52;c" in line for line in announced), announced
