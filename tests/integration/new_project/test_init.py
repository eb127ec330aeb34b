"""`lakewright init`: a project of any name, for a sandbox or a Lakekeeper, that is valid at once."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml
from lakewright.new_project.requirements import build_constraints
from lakewright_engine.project.project import PulumiProject
from lakewright_sandbox.runtime.state import Sandbox
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.command_server import LAKEWRIGHT, run_command

REPOSITORY = Path(__file__).parents[3]
LAKEKEEPER = ("--lakekeeper", "https://lakekeeper.example", "--auth", "client-credentials")
CLIENT = ("--token-url", "https://idp.example/token", "--client-id", "lakewright", "--client-secret", "env:SECRET")


def run_lakewright(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return run_command(arguments, folder, os.environ | {"PULUMI_CONFIG_PASSPHRASE": "x"} | variables)


def test_sandbox_project_is_complete_and_valid(tmp_path: Path) -> None:
    done = run_lakewright(tmp_path, "init", "lake", "--name", "any.name_1", "--cloud", "sandbox", "--ci", "github")
    project = tmp_path / "lake"
    creation = run_lakewright(project, "new", "acme", "--owner", "data@acme.example", "--namespace", "sales.daily")
    checked = run_lakewright(project, "spec", "validate")
    tested = subprocess.run([sys.executable, "-m", "unittest", "discover", "tests"], cwd=project, check=False)

    assert done.returncode == 0, done.stderr
    assert yaml.safe_load((project / "Pulumi.yaml").read_text())["name"] == "any.name_1"
    assert "template" not in (project / "Pulumi.yaml").read_text()
    workflow = (project / ".github" / "workflows" / "preview.yml").read_text()
    assert "pip install --quiet -r requirements.txt" in workflow
    assert "-c constraints.txt\nlakewright[sandbox,spark]==" in (project / "requirements.txt").read_text()
    assert (creation.returncode, checked.returncode, tested.returncode) == (0, 0, 0), creation.stderr + checked.stderr
    spec = (project / "tenants" / "Pulumi.acme.yaml").read_text()
    assert "$schema=../schema/tenant.schema.json" in spec
    assert "{name: executions, key_prefix: executions, namespaces: [sales.daily], deletion: protect}" in spec
    assert "environment: sandbox" in spec


def test_constraints_have_the_locked_version_of_each_package() -> None:
    """They do not depend on what is installed where `init` runs: with `uvx`, that is too little."""
    constraints = [line for line in build_constraints().splitlines() if not line.startswith("#")]
    locked = {line.partition(" ")[0] for line in (REPOSITORY / "requirements.lock").read_text().splitlines()}
    pending = [Requirement("lakewright[aws,engine,kubernetes,sandbox,spark]")]
    required: set[str] = set()
    while pending:
        requirement = pending.pop()
        for extra in ("", *requirement.extras):
            if (key := f"{canonicalize_name(requirement.name)}[{extra}]") not in required:
                required.add(key)
                children = map(Requirement, distribution(requirement.name).requires or ())
                pending += [child for child in children if not child.marker or child.marker.evaluate({"extra": extra})]
    names = {key.partition("[")[0] for key in required if not key.startswith("lakewright")}

    assert {line.partition(" ")[0] for line in constraints} <= locked
    assert names <= {line.partition("==")[0] for line in constraints}
    assert {"aiobotocore", "pyspark", "pulumi-aws"} <= names


def test_program_of_the_project_declares_the_tenant(tmp_path: Path, sandbox: Sandbox) -> None:
    """The project uses a sandbox elsewhere, and the packages of this environment."""
    assert run_lakewright(tmp_path, "init", ".", "--name", "lake").returncode == 0
    project_file = tmp_path / "Pulumi.yaml"
    project_file.write_text(project_file.read_text().replace(".venv", str(Path(sys.prefix))))
    variables = {"LAKEWRIGHT_SANDBOX": str(sandbox.credentials_file.parent)}
    options = ("--owner", "a@acme.example", "--bucket", "init-acme")
    assert run_lakewright(tmp_path, "new", "initacme", *options, "--deletion", "purge", **variables).returncode == 0
    assert run_lakewright(tmp_path, "stack", "init", "initacme", **variables).returncode == 0

    done = run_lakewright(tmp_path, "up", "initacme", "--yes", "--engine", "embedded", **variables)
    drift = run_lakewright(tmp_path, "drift", "initacme", **variables)
    removed = run_lakewright(tmp_path, "destroy", "initacme", "--yes", "--engine", "embedded", **variables)

    assert done.returncode == 0, done.stdout + done.stderr
    assert drift.returncode == 0, drift.stdout + drift.stderr
    assert removed.returncode == 0, removed.stdout + removed.stderr


def test_environment_names_the_server_and_its_client(tmp_path: Path) -> None:
    arn = "arn:aws:iam::111122223333:role/lakekeeper"
    options = (*LAKEKEEPER, *CLIENT, "--scope", "lakekeeper", "--region", "eu-west-1", "--principal-arn", arn)
    backend = "s3://states?region=eu-west-1"
    additions = ("--with", "platform")
    done = run_lakewright(tmp_path, "init", "lake", "--cloud", "aws", *options, *additions, "--backend", backend)

    assert done.returncode == 0, done.stderr
    environment = yaml.safe_load((tmp_path / "lake" / "environments" / "production.yaml").read_text())
    assert environment["lakekeeper"]["auth"] == {
        "kind": "client-credentials",
        "token_url": "https://idp.example/token",
        "client_id": "lakewright",
        "client_secret": "env:SECRET",
        "scope": "lakekeeper",
    }
    assert environment["lakekeeper"]["principal_arn"] == arn
    assert environment["aws"] == {"region": "eu-west-1"}
    for folder in (tmp_path / "lake", tmp_path / "lake" / "platform"):
        assert yaml.safe_load((folder / "Pulumi.yaml").read_text())["backend"] == {"url": backend}
    assert not (tmp_path / "lake" / "environments" / "sandbox.yaml").exists()
    creation = run_lakewright(tmp_path / "lake", "new", "acme", "--owner", "a@b")
    checked = run_lakewright(tmp_path / "lake", "spec", "validate", SECRET="unused")
    assert (creation.returncode, checked.returncode) == (0, 0), creation.stderr + checked.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((*LAKEKEEPER, "--token-url", "https://idp.example", "--client-secret", "hunter2"), "auth.client_secret"),
        (("--lakekeeper", "lakekeeper.example"), "lakekeeper.endpoint"),
        (("--environment", "Prod!", *LAKEKEEPER, *CLIENT), "Prod!: expected lower-case letters"),
        (("--name", "a b", *LAKEKEEPER, *CLIENT), "--name a b: expected"),
    ],
)
def test_invalid_settings_write_nothing(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    done = run_lakewright(tmp_path, "init", "lake", "--cloud", "aws", *options)

    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--cloud", "aws", *LAKEKEEPER[:2], *CLIENT),
            "--token-url, --client-id, --client-secret: `--auth none` does not use them; pass `--auth client-",
        ),
        (
            ("--cloud", "s3", *LAKEKEEPER[:2], "--auth", "token", "--client-id", "lakewright"),
            "--client-id: `--auth token` does not use them",
        ),
        (("--cloud", "s3", *LAKEKEEPER, *CLIENT, "--token", "env:TOKEN"), "--token: `--auth client-credentials` does"),
        (
            ("--cloud", "sandbox", "--token", "env:TOKEN", *CLIENT[2:], "--scope", "lakekeeper"),
            "--token, --client-id, --client-secret, --scope: `--cloud sandbox` does not use them",
        ),
    ],
)
def test_init_refuses_options_without_effect(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    done = run_lakewright(tmp_path, "init", "lake", *options)

    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "lake").exists()


def test_new_refuses_options_of_another_backend(tmp_path: Path) -> None:
    assert run_lakewright(tmp_path, "init", ".", "--cloud", "sandbox").returncode == 0
    store = ("--endpoint", "https://store.example", "--access-key", "config:id", "--secret-key", "config:secret")

    done = run_lakewright(tmp_path, "new", "acme", "--owner", "acme", *store)

    assert done.returncode == 2
    message = "--endpoint, --access-key, --secret-key: `--backend aws` does not use them; pass `--backend s3`, or leave"
    assert message in done.stderr
    assert not (tmp_path / "tenants" / "Pulumi.acme.yaml").exists()
    assert run_lakewright(tmp_path, "new", "acme", "--owner", "acme", "--backend", "s3", *store).returncode == 0


@pytest.mark.parametrize("name", ["2026", "true", "1.0", "null"])
def test_project_may_have_any_name_that_pulumi_accepts(tmp_path: Path, name: str) -> None:
    done = run_lakewright(tmp_path, "init", f"{name} lake", "--name", name, "--cloud", "sandbox")

    assert f"  cd '{name} lake'\n" in done.stdout
    assert PulumiProject.load(tmp_path / f"{name} lake").name == name


def test_existing_files_are_named_and_kept(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / "__main__.py").symlink_to("nowhere")
    (tmp_path / ".venv").mkdir()

    done = run_lakewright(tmp_path, "init", ".", "--cloud", "sandbox")

    assert done.returncode == 2
    assert "nothing was written: " in done.stderr
    assert "README.md" in done.stderr
    assert "__main__.py" in done.stderr
    assert (tmp_path / "README.md").read_text() == "mine"
    assert not (tmp_path / "Pulumi.yaml").exists()


def test_second_run_changes_nothing(tmp_path: Path) -> None:
    first = run_lakewright(tmp_path, "init", "lake", "--with", "policy", "--with", "platform", "--ci", "gitlab")
    texts = {path: path.read_bytes() for path in (tmp_path / "lake").rglob("*") if path.is_file()}
    second = run_lakewright(tmp_path, "init", "lake", "--with", "policy", "--with", "platform", "--ci", "gitlab")

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert texts == {path: path.read_bytes() for path in (tmp_path / "lake").rglob("*") if path.is_file()}
    assert "virtualenv: ../.venv" in (tmp_path / "lake" / "platform" / "Pulumi.yaml").read_text()
    stacks = tmp_path / "lake" / "platform" / "stacks"
    schema_lines = {file.read_text().partition("\n")[0] for file in stacks.glob("*.yaml")}
    assert schema_lines == {"# yaml-language-server: $schema=../../schema/platform.schema.json"}
    assert (stacks / "../../schema/platform.schema.json").is_file()
    assert (tmp_path / "lake" / "policy" / "lakewright_policy" / "registry.py").is_file()
    assert (tmp_path / "lake" / ".gitlab-ci.yml").is_file()


def test_terminal_is_asked_again_after_a_mistake(tmp_path: Path) -> None:
    """A bucket with capital letters is refused at once; the next input counts."""
    assert run_lakewright(tmp_path, "init", ".", "--cloud", "sandbox").returncode == 0
    controller, terminal = pty.openpty()
    replies = ["", "data@acme.example", "aws", "Acme_Lake", "acme-lake", "raw", "", "sales, sales..b", "sales", "", ""]
    command = [LAKEWRIGHT, "new", "acme"]
    process = subprocess.Popen(command, cwd=tmp_path, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    os.write(controller, "".join(f"{reply}\n" for reply in replies).encode())
    printed, _ = process.communicate(timeout=60)
    os.close(controller)
    os.close(terminal)

    assert process.returncode == 0, printed.decode()
    assert b"a bucket name has 3 to 63 lower-case letters" in printed
    assert b"no level is empty" in printed
    text = (tmp_path / "tenants" / "Pulumi.acme.yaml").read_text()
    assert "main: {backend: aws, bucket: acme-lake}" in text
    assert "{name: raw, key_prefix: raw, namespaces: [sales], deletion: protect}" in text


@pytest.mark.pulumi_cli
def test_template_makes_a_project_by_pulumi_new(tmp_path: Path) -> None:
    template = run_lakewright(tmp_path, "init", "--template-path").stdout.strip()
    environment = os.environ | {"PULUMI_BACKEND_URL": f"file://{tmp_path}", "PULUMI_SKIP_UPDATE_CHECK": "1"}
    command = ["pulumi", "new", template, "--name", "lake2", "--generate-only", "--yes", "--dir", tmp_path / "lake2"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    project = yaml.safe_load((tmp_path / "lake2" / "Pulumi.yaml").read_text())
    assert (project["name"], project["stackConfigDir"]) == ("lake2", "tenants")
    assert "template" not in project
    assert "${PROJECT}" not in (tmp_path / "lake2" / "README.md").read_text()
