"""Where a warm process listens, when there is one, and which commands share it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from lakewright.warm.address import find_address, is_enabled, make_socket_folder, select_environment
from lakewright.warm.client import WarmClient
from lakewright.warm.freshness import Freshness
from lakewright.warm.preload import find_importable_packages


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in which warm processes are switched on."""
    monkeypatch.setenv("LAKEWRIGHT_WARM", "1")
    (tmp_path / "Pulumi.yaml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["CI", "TF_BUILD", "JENKINS_URL", "PYTEST_CURRENT_TEST"])
def test_unattended_runs_have_none(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for variable in ("CI", "TF_BUILD", "JENKINS_URL", "PYTEST_CURRENT_TEST", "LAKEWRIGHT_WARM"):
        monkeypatch.delenv(variable, raising=False)
    assert is_enabled()
    monkeypatch.setenv(name, "true")
    assert not is_enabled()
    monkeypatch.setenv("LAKEWRIGHT_WARM", "1")
    assert is_enabled()
    monkeypatch.setenv("LAKEWRIGHT_WARM", "off")
    assert not is_enabled()


@pytest.mark.parametrize(
    "arguments",
    [[], ["--help"], ["stack", "ls"], ["up", "--no-warm"], ["up", "-C", "/"], ["preview", "--cwd=/nowhere"]],
)
def test_commands_that_run_by_themselves(arguments: list[str]) -> None:
    assert find_address(arguments) is None


def test_commands_that_name_a_descriptor_run_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warm process has only the standard streams of its commands."""
    assert WarmClient.create_for_command(["up", "--config-file", "/dev/fdroid"]) is not None
    assert WarmClient.create_for_command(["up", "--config-file=/proc/self/fd/12"]) is None
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", "/dev/fd/63")
    assert WarmClient.create_for_command(["up"]) is None


def test_commands_of_a_project_share_an_address(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "below").mkdir()
    commands = (
        ["up"],
        ["preview", "-C", "below"],
        ["destroy", "--cwd=below"],
        ["refresh", f"-C{project}"],
        ["drift", "--all"],
        ["verify", "--stack", "acme"],
        ["config", "get", "aws:region"],
        ["check", "--all"],
    )
    addresses = [find_address(arguments) for arguments in commands]
    assert len({address.socket for address in addresses if address}) == 1
    assert None not in addresses
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    other = find_address(["up"])
    assert other is not None
    assert addresses[0] is not None
    assert other.socket != addresses[0].socket


def test_each_kubeconfig_has_its_own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client of Kubernetes reads the variable when it is imported."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    first = find_address(["drift"])
    monkeypatch.setenv("KUBECONFIG", "/other/config")
    second = find_address(["drift"])
    assert first is not None
    assert second is not None
    assert first.socket != second.socket
    assert select_environment()["KUBECONFIG"] == "/other/config"


def test_no_secret_is_in_the_environment_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_ACCESS_TOKEN", "AWS_SECRET_ACCESS_KEY", "VAULT_TOKEN"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("PYTHONPATH", "/packages")
    assert "secret" not in select_environment().values()
    assert select_environment()["PYTHONPATH"] == "/packages"


def test_folders_that_others_may_enter_hold_no_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    tmp_path.chmod(0o755)
    assert make_socket_folder() == f"/tmp/lakewright-{os.geteuid()}"


def test_changes_of_imported_files_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "imported_once.py"
    module.touch()
    old = time.time() - 60
    os.utime(module, (old, old))
    os.utime(tmp_path, (old, old))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    __import__("imported_once")
    fresh = Freshness(time.time())
    fresh.stamp_imports()
    assert fresh.find_change() == ""

    module.write_text("new = 1\n")

    assert fresh.find_change() == str(module)


def test_only_own_dependencies_are_imported_ahead() -> None:
    packages = find_importable_packages()
    assert {"lakewright", "pulumi", "pulumi_aws", "httpx", "json"} <= packages
    assert not {"pytest", "readline", "pyspark", "__main__"} & packages
