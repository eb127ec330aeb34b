"""The package with the tenant's component, used by programs in YAML and TypeScript on the real CLI."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from lakewright.packaged_files import FOLDER
from lakewright_sandbox.runtime.state import Sandbox

from tests.command_server import run_command

pytestmark = [
    pytest.mark.pulumi_cli,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        shutil.which("pulumi-language-yaml") is None,
        reason="needs pulumi-language-yaml on the PATH, the CLI's host of YAML programs",
    ),
]

SPEC: dict[str, Any] = {
    "owner": "data@acme.example",
    "storage": {"main": {"backend": "aws", "bucket": "yaml-package"}},
    "warehouses": [{"name": "executions", "namespaces": ["sales"], "soft_delete_days": 7, "deletion": "purge"}],
}


TYPESCRIPT = """\
import * as lakewright from "@pulumi/lakewright";

const tenant = new lakewright.Tenant("packaged", {spec});
export const ids = tenant.warehouse_ids;
"""


class PackageProject:
    """A project whose program is not in Python, in a folder with the package and an environment."""

    def __init__(self, folder: Path, sandbox: Sandbox, settings: dict[str, str]) -> None:
        self.folder = folder
        state = {"PULUMI_BACKEND_URL": folder.as_uri(), "PULUMI_CONFIG_PASSPHRASE": "package"}
        # Dynamic providers of a YAML program run with the `python3` of the PATH.
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environ = os.environ | settings | state | {"PATH": path}
        (folder / "environments").mkdir()
        (folder / "environments" / "here.yaml").write_text(f"sandbox: {sandbox.credentials_file.parent}\n")
        shutil.copytree(FOLDER / "component", folder / "component", ignore=shutil.ignore_patterns("__pycache__"))
        plugin = folder / "component" / "PulumiPlugin.yaml"
        plugin.write_text(plugin.read_text().replace("../../.venv", sys.prefix))

    def write(self, **properties: Any) -> None:
        """Write the program."""
        environment = {"environment": "${pulumi.cwd}/environments/here.yaml"}
        tenant = {"type": "lakewright:Tenant", "properties": environment | SPEC | properties}
        program = {
            "name": "lake",
            "runtime": "yaml",
            "packages": {"lakewright": "./component"},
            "resources": {"packaged": tenant},
            "outputs": {"ids": "${packaged.warehouse_ids}"},
        }
        (self.folder / "Pulumi.yaml").write_text(yaml.safe_dump(program, sort_keys=False))

    def write_typescript_program(self) -> None:
        """Write the same program in TypeScript, with the SDK that the CLI generates from the package's schema."""
        from lakewright.tenant.package import TenantPackage

        schema = self.folder / "schema.json"
        schema.write_text(TenantPackage().schema or "")
        self.output("package", "gen-sdk", str(schema), "--language", "nodejs", "--out", str(self.folder / "sdk"))
        program = {"name": "lake", "runtime": "nodejs", "packages": {"lakewright": "./component"}}
        (self.folder / "Pulumi.yaml").write_text(yaml.safe_dump(program))
        properties = {"environment": f"{self.folder}/environments/here.yaml"} | SPEC
        (self.folder / "index.ts").write_text(TYPESCRIPT.replace("{spec}", json.dumps(properties)))
        shutil.copytree(Path(__file__).parent / "typescript", self.folder, dirs_exist_ok=True)
        for command in (["npm", "ci", "--ignore-scripts"], ["npm", "install", "--ignore-scripts", "./sdk/nodejs"]):
            done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr

    def write_python_program(self) -> None:
        """Write the program of other projects instead, with the same spec."""
        options = {"virtualenv": sys.prefix}
        settings = {"name": "lake", "runtime": {"name": "python", "options": options}, "stackConfigDir": "tenants"}
        (self.folder / "Pulumi.yaml").write_text(yaml.safe_dump(settings))
        (self.folder / "__main__.py").write_text("from lakewright import declare_tenant\n\ndeclare_tenant()\n")
        spec = {"version": 1, "environment": "here", "name": "packaged", **SPEC}
        stack = yaml.safe_load((self.folder / "Pulumi.packaged.yaml").read_text())
        (self.folder / "tenants").mkdir()
        file = self.folder / "tenants" / "Pulumi.packaged.yaml"
        file.write_text(yaml.safe_dump(stack | {"config": {"lakewright:tenant": spec}}))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the CLI."""
        stack = [] if arguments[0] == "package" else ["--stack", "packaged", "--non-interactive"]
        command = ["pulumi", *arguments, *stack]
        return subprocess.run(command, cwd=self.folder, env=self.environ, capture_output=True, text=True, check=False)

    def output(self, *arguments: str) -> str:
        """Run a command of the CLI that has to succeed."""
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def project(tmp_path: Path, sandbox: Sandbox, attached_providers: dict[str, str]) -> PackageProject:
    project = PackageProject(tmp_path, sandbox, attached_providers)
    project.write()
    subprocess.run(["pulumi", "stack", "init", "packaged"], cwd=tmp_path, env=project.environ, check=True)
    return project


def test_tenant_of_a_yaml_program_continues_in_python(project: PackageProject) -> None:
    """The resources have the URNs of a program in Python, which finds no difference."""
    project.output("up", "--yes")
    project.output("preview", "--refresh", "--expect-no-changes")
    outputs = json.loads(project.output("stack", "output", "--json"))
    project.write_python_program()
    unchanged = ["packaged", "--refresh", "--json", "--engine", "embedded"]
    preview = run_command(["preview", *unchanged], project.folder, project.environ)
    removed = run_command(["destroy", "packaged", "--yes", "--engine", "embedded"], project.folder, project.environ)

    assert [*outputs["ids"]] == ["executions"]
    assert preview.returncode == 0, preview.stderr
    changes = {step["urn"].rpartition("::")[2]: step["op"] for step in json.loads(preview.stdout)["steps"]}
    assert set(changes.values()) == {"same"}, changes
    assert removed.returncode == 0, removed.stderr


@pytest.mark.skipif(
    None in (shutil.which("pulumi-language-nodejs"), shutil.which("npm")),
    reason="needs npm and pulumi-language-nodejs on the PATH, the CLI's host of programs for Node",
)
def test_tenant_of_a_typescript_program_continues_in_yaml(project: PackageProject) -> None:
    project.write_typescript_program()
    project.output("up", "--yes")
    outputs = json.loads(project.output("stack", "output", "--json"))
    project.write()
    project.output("preview", "--refresh", "--expect-no-changes")
    project.output("destroy", "--yes")

    assert [*outputs["ids"]] == ["executions"]


def test_mistakes_of_inputs_are_named_before_any_call(project: PackageProject) -> None:
    project.write(warehouses=[{"name": "not valid!"}], name="other")
    name = project.run("preview")
    project.write(warehouses=[{"name": "not valid!"}], storage={"main": {"backend": "s3", "bucket": "A"}})
    values = project.run("preview")
    project.write(warehouses=[{"name": "executions", "colour": "blue"}])
    field = project.run("preview")

    assert "expected `packaged`, the name of the resource, found `other`" in name.stdout
    assert "property warehouses.0.name has a problem: expected up to 40 letters" in values.stdout
    assert "property storage.main.endpoint has a problem" in values.stdout
    assert "Traceback" not in values.stdout + name.stdout
    # The CLI knows the fields from the package's schema.
    assert "colour" in field.stdout
    assert 0 not in (name.returncode, values.returncode, field.returncode)


def test_sdk_is_generated_from_the_schema(tmp_path: Path) -> None:
    from lakewright.tenant.package import TenantPackage

    schema = tmp_path / "schema.json"
    schema.write_text(TenantPackage().schema or "")
    command = ["pulumi", "package", "gen-sdk", schema, "--language", "python", "--out", tmp_path]
    environ = os.environ | {"PULUMI_HOME": str(tmp_path / "home")}

    subprocess.run(command, env=environ, capture_output=True, check=True)

    sdk = "\n".join(file.read_text() for file in (tmp_path / "python").rglob("*.py"))
    assert "class WarehouseSpecArgs" in sdk
    assert "soft_delete_days: Optional[_builtins.int]" in sdk
