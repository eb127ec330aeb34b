"""The engine that `auto` chooses, and the reason that it reports."""

from pathlib import Path

import pytest
from lakewright.cli.engines import choice as engines
from lakewright.cli.engines.choice import EmbeddedEngine, choose_engine, format_choice
from lakewright.cli.environments import is_in_sandbox, warn_of_ignored_sandbox
from lakewright.cli.options import EngineName
from lakewright.project_files import plugins
from lakewright_engine.project.project import PulumiProject


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path / 'state'}")
    monkeypatch.delenv("PULUMI_DEBUG_PROVIDERS", raising=False)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> PulumiProject:
    (tmp_path / "Pulumi.yaml").write_text("name: conf\nruntime: python\n")
    (tmp_path / "__main__.py").write_text("import pulumi\n")
    return PulumiProject.load(tmp_path)


def install(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)


def test_embedded_engine_runs_without_the_cli(path: Path, project: PulumiProject) -> None:
    assert (
        format_choice(choose_engine(EngineName.AUTO, project, "dev"))
        == "Engine: embedded (the Pulumi CLI is not on the PATH)"
    )
    install(path, "pulumi")
    assert "pulumi-language-python" in choose_engine(EngineName.AUTO, project, "dev").reason


def test_cli_runs_programs_whose_plugins_it_has(path: Path, project: PulumiProject, tmp_path: Path) -> None:
    install(path, "pulumi", "pulumi-language-python")
    assert choose_engine(EngineName.AUTO, project, "dev").name == "pulumi"
    (tmp_path / "__main__.py").write_text("import pulumi_aws as aws\n")
    assert (
        format_choice(choose_engine(EngineName.AUTO, project, "dev"))
        == "Engine: embedded (the Pulumi CLI has no plugin for aws)"
    )
    install(path, "pulumi-resource-aws")
    assert choose_engine(EngineName.AUTO, project, "dev").reason == "it is on the PATH and has the plugins for aws"


def test_plugins_of_dependencies_are_needed_too(
    path: Path, project: PulumiProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(path, "pulumi", "pulumi-language-python")
    (tmp_path / "__main__.py").write_text("from lakewright.tenant.tenant import Tenant\n")
    assert plugins.find_needed_plugins(project, "dev") == {"aws", "kubernetes"}
    assert choose_engine(EngineName.AUTO, project, "dev").reason == "the Pulumi CLI has no plugin for aws, kubernetes"
    monkeypatch.setenv("PULUMI_DEBUG_PROVIDERS", "aws:1234")
    (tmp_path / "home" / "plugins" / "resource-kubernetes-v4.34.0").mkdir(parents=True)
    assert choose_engine(EngineName.AUTO, project, "dev").name == "pulumi"


def test_providers_in_the_state_are_needed(path: Path, project: PulumiProject, tmp_path: Path) -> None:
    state = tmp_path / "state" / ".pulumi"
    (state / "stacks" / "conf").mkdir(parents=True)
    (state / "meta.yaml").write_text("version: 1\n")
    (state / "stacks" / "conf" / "dev.json").write_text(
        '{"version":3,"checkpoint":{"latest":{"resources":[{"urn":"urn:gcp","type":"pulumi:providers:gcp"},'
        '{"urn":"urn:python","type":"pulumi:providers:pulumi-python"}]}}}'
    )
    assert plugins.find_needed_plugins(project, "dev") == {"gcp"}


def test_sandbox_uses_its_own_providers(path: Path, project: PulumiProject, tmp_path: Path) -> None:
    """The CLI has plugins for everything, but a sandbox needs its own providers."""
    install(path, "pulumi", "pulumi-language-python", "pulumi-resource-aws")
    (tmp_path / "__main__.py").write_text("import pulumi_aws as aws\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {lakewright:tenant: {environment: laptop}}\n")
    environment = tmp_path / "environments" / "laptop.yaml"
    environment.parent.mkdir()
    environment.write_text("lakekeeper: {endpoint: http://lakekeeper}\n")
    assert choose_engine(EngineName.AUTO, project, "dev").name == "pulumi"

    environment.write_text("sandbox: ../.sandbox\n")

    engine = choose_engine(EngineName.AUTO, project, "dev")
    assert (engine.name, engine.reason) == ("embedded", "the environment is a sandbox, which has its own aws")


def test_sandbox_variable_leaves_other_environments_alone(
    path: Path, project: PulumiProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(path, "pulumi", "pulumi-language-python", "pulumi-resource-aws")
    (tmp_path / "__main__.py").write_text("import pulumi_aws as aws\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {lakewright:tenant: {environment: production}}\n")
    environment = tmp_path / "environments" / "production.yaml"
    environment.parent.mkdir()
    environment.write_text("lakekeeper: {endpoint: https://lakekeeper}\n")
    monkeypatch.setenv("LAKEWRIGHT_SANDBOX", str(tmp_path))

    assert not is_in_sandbox(project, "dev")
    assert choose_engine(EngineName.AUTO, project, "dev").name == "pulumi"
    assert warn_of_ignored_sandbox(project, "dev") == (
        "LAKEWRIGHT_SANDBOX is ignored: environments/production.yaml has no `sandbox`, so the stack uses its servers."
    )
    environment.write_text("sandbox: ../.sandbox\n")
    assert warn_of_ignored_sandbox(project, "dev") == ""


def test_sandbox_is_looked_up_once_a_run(path: Path, project: PulumiProject, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []

    def look(_: PulumiProject, stack: str) -> bool:
        looks.append(stack)
        return True

    monkeypatch.setattr(engines, "is_in_sandbox", look)
    install(path, "pulumi", "pulumi-language-python")
    (project.root / "__main__.py").write_text("import pulumi_aws as aws\n")
    monkeypatch.setattr(plugins, "find_missing_plugins", lambda _needed: [])  # pyright: ignore[reportUnknownLambdaType]

    choice = choose_engine(EngineName.AUTO, project, "dev")

    assert choice.reason == "the environment is a sandbox, which has its own aws"
    assert choice.engine == EmbeddedEngine(in_sandbox=True)
    assert looks == ["dev"]
