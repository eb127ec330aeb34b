"""A sandbox's life: up, status, down; restarts, crashes, taken ports, and several sandboxes at once."""

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import httpx
import pytest
from lakewright_sandbox.runtime import processes
from lakewright_sandbox.runtime.credentials import load

from tests.integration.sandbox.conftest import kill

Run = Callable[..., subprocess.CompletedProcess[str]]


def up(run: Run, directory: Path, *more: str) -> dict[str, Any]:
    completed = run("up", "--dir", str(directory), "--json", *more)
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


def buckets(state: dict[str, Any]) -> list[str]:
    s3 = boto3.client(
        "s3",
        endpoint_url=state["aws"]["endpoint"],
        region_name=state["aws"]["region"],
        aws_access_key_id=state["admin"]["access_key_id"],
        aws_secret_access_key=state["admin"]["secret_access_key"],
    )
    return [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]


def create_project(state: dict[str, Any]) -> str:
    management = f"{state['lakekeeper']['endpoint']}/management/v1"
    httpx.post(f"{management}/bootstrap", json={"accept-terms-of-use": True})
    created = httpx.post(f"{management}/project", json={"project-name": "kept"})
    return str(created.raise_for_status().json()["project-id"])


def projects(state: dict[str, Any]) -> list[str]:
    response = httpx.get(f"{state['lakekeeper']['endpoint']}/management/v1/project-list").raise_for_status().json()
    return [project["project-id"] for project in response["projects"]]


def test_up_status_down(directory: Path, sandbox_command: Run) -> None:
    state = up(sandbox_command, directory)
    assert buckets(state) == []
    assert httpx.get(f"{state['lakekeeper']['endpoint']}/health").json()["health"] == "ok"
    assert state["lakekeeper"]["catalog_uri"] == f"{state['lakekeeper']['endpoint']}/catalog"
    assert state["aws"]["catalog_principal_arn"] == "arn:aws:iam::123456789012:user/lakekeeper"

    on_disk = (directory / "sandbox.json").read_text()
    assert json.loads(on_disk) == {key: value for key, value in state.items() if key != "admin"}
    for key in load(directory / "credentials").values():
        assert key.secret_access_key.get_secret_value() not in on_disk
    for name in ("sandbox.json", "credentials", "lakekeeper.db", "lakekeeper.db-wal"):
        assert stat.S_IMODE((directory / name).stat().st_mode) == 0o600, name
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    directory.chmod(0o755)

    second_up = sandbox_command("up", "--dir", str(directory))
    assert "is already running" in second_up.stdout
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700, (
        "a directory of an earlier release is closed to other users, too"
    )
    status = sandbox_command("status", "--dir", str(directory))
    assert status.returncode == 0
    assert "live as long as the AWS process: since 20" in status.stdout

    assert "Stopped: lakekeeper, aws." in sandbox_command("down", "--dir", str(directory)).stdout
    for process_name in ("aws", "lakekeeper"):
        assert processes.command_line(state[process_name]["pid"]) == []
    assert sandbox_command("status", "--dir", str(directory)).returncode == 3
    assert "Nothing of the sandbox was running" in sandbox_command("down", "--dir", str(directory)).stdout


@pytest.mark.long
def test_a_restart_keeps_catalog_keys_and_ports_not_buckets(directory: Path, sandbox_command: Run) -> None:
    before = up(sandbox_command, directory)
    project = create_project(before)
    make_bucket(before)
    sandbox_command("down", "--dir", str(directory))
    after = up(sandbox_command, directory)
    assert project in projects(after)
    assert buckets(after) == []
    for process_name in ("aws", "lakekeeper"):
        assert after[process_name]["endpoint"] == before[process_name]["endpoint"]
        assert after[process_name]["pid"] != before[process_name]["pid"]
    assert (after["id"], after["admin"]) == (before["id"], before["admin"])


def make_bucket(state: dict[str, Any]) -> None:
    boto3.client(
        "s3",
        endpoint_url=state["aws"]["endpoint"],
        region_name="us-east-1",
        aws_access_key_id=state["admin"]["access_key_id"],
        aws_secret_access_key=state["admin"]["secret_access_key"],
    ).create_bucket(Bucket="made-before")


@pytest.mark.long
def test_authz_of_a_catalog_changes_only_by_reset(directory: Path, sandbox_command: Run) -> None:
    before = up(sandbox_command, directory)
    project = create_project(before)
    remedy = f"lakewright sandbox reset --dir {directory} --authz openfga"

    for _ in range(2):
        refused = sandbox_command("up", "--dir", str(directory), "--authz", "openfga")
        assert refused.returncode == 2
        assert "`--authz allowall`, which cannot change to openfga" in refused.stderr
        assert remedy in refused.stderr
        assert project in projects(before)
        assert sandbox_command("up", "--dir", str(directory), "--authz", "allowall").returncode == 0
    sandbox_command("down", "--dir", str(directory))
    assert sandbox_command("up", "--dir", str(directory), "--authz", "openfga").returncode == 2

    assert sandbox_command(*remedy.split()[2:]).returncode == 2, "it asks, and there is no terminal"
    completed = sandbox_command(*remedy.split()[2:], "--yes", "--json")
    assert completed.returncode == 0, completed.stderr
    after = json.loads(completed.stdout)
    assert after["lakekeeper"]["authz"] == "openfga"
    assert after["admin"] == before["admin"]
    assert after["aws"]["endpoint"] == before["aws"]["endpoint"]
    info = httpx.get(f"{after['lakekeeper']['endpoint']}/management/v1/info")
    assert info.status_code == 401, "it requires tokens"


@pytest.mark.long
def test_reset_empties_a_sandbox_and_keeps_its_options(directory: Path, sandbox_command: Run) -> None:
    before = up(sandbox_command, directory, "--version", "0.12")
    create_project(before)

    completed = sandbox_command("reset", "--yes", "--json", "--dir", str(directory))

    after = json.loads(completed.stdout)
    assert after["lakekeeper"]["version"] == "0.12"
    info = httpx.get(f"{after['lakekeeper']['endpoint']}/management/v1/info").json()
    assert info["bootstrapped"] is False
    assert sandbox_command("reset", "--yes", "--dir", str(directory / "none")).returncode == 1


@pytest.mark.long
@pytest.mark.parametrize("process_name", ["aws", "lakekeeper"])
def test_only_the_crashed_process_is_restarted(directory: Path, sandbox_command: Run, process_name: str) -> None:
    before = up(sandbox_command, directory)
    kill(before[process_name]["pid"])
    status = sandbox_command("status", "--dir", str(directory), "--json")
    assert status.returncode == 3
    assert json.loads(status.stdout)["running"][process_name] is False

    second_up = sandbox_command("up", "--dir", str(directory))
    assert f"Restarted {process_name} of the sandbox" in second_up.stdout
    after = up(sandbox_command, directory)
    other = {"aws": "lakekeeper", "lakekeeper": "aws"}[process_name]
    assert after[other] == before[other]
    assert after[process_name]["endpoint"] == before[process_name]["endpoint"]


@pytest.mark.long
def test_a_port_that_was_taken_meanwhile(directory: Path, sandbox_command: Run) -> None:
    before = up(sandbox_command, directory)
    sandbox_command("down", "--dir", str(directory))
    with socket.create_server(("127.0.0.1", urlsplit(before["aws"]["endpoint"]).port or 0)):
        after = up(sandbox_command, directory)
        assert after["aws"]["endpoint"] != before["aws"]["endpoint"]
        assert after["lakekeeper"]["endpoint"] == before["lakekeeper"]["endpoint"]
        assert buckets(after) == []


@pytest.mark.long
def test_down_spares_a_foreign_process_with_an_old_pid(directory: Path, sandbox_command: Run) -> None:
    state = up(sandbox_command, directory)
    sandbox_command("down", "--dir", str(directory))
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        content = json.loads((directory / "sandbox.json").read_text())
        content["aws"]["pid"] = stranger.pid
        (directory / "sandbox.json").write_text(json.dumps(content))
        completed = sandbox_command("down", "--dir", str(directory))
        assert "Nothing of the sandbox was running" in completed.stdout
        assert stranger.poll() is None
    finally:
        stranger.communicate(b"\n")
    assert state["aws"]["pid"] != stranger.pid


@pytest.mark.long
def test_a_failed_start_is_reported_with_the_log(directory: Path, sandbox_command: Run) -> None:
    directory.mkdir(parents=True)
    completed = sandbox_command("up", "--dir", str(directory), "--database", "sqlite:////proc/none/there.db")
    assert completed.returncode == 1
    assert "The sandbox's Lakekeeper ended with exit code" in completed.stderr
    assert "/proc/none/there.db" in completed.stderr
    assert not (directory / "sandbox.json").exists()
    # The process that started is stopped, so that no unrecorded process remains.
    remaining_pids = [pid for pid in list_pids() if str(directory / "credentials") in processes.command_line(pid)]
    assert remaining_pids == []
    # The next run does not use the database that failed.
    up(sandbox_command, directory)


@pytest.mark.long
def test_a_database_url_of_the_environment_is_not_in_ps(directory: Path, tmp_path: Path, sandbox_command: Run) -> None:
    """The URL of a database may contain a password."""
    url = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    completed = sandbox_command("up", "--dir", str(directory), env={**os.environ, "LAKEWRIGHT_SANDBOX_DATABASE": url})
    assert completed.returncode == 0, completed.stderr
    assert (tmp_path / "elsewhere.db").exists()
    lakekeeper = json.loads((directory / "sandbox.json").read_text())["lakekeeper"]["pid"]
    assert "elsewhere.db" not in " ".join(processes.command_line(lakekeeper))


def list_pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def test_a_broken_credentials_file_is_reported_without_content(directory: Path, sandbox_command: Run) -> None:
    directory.mkdir(parents=True)
    (directory / "credentials").write_text("[admin]\naws_access_key_id = A\nsecret-without-a-name\n")
    completed = sandbox_command("up", "--dir", str(directory))
    assert completed.returncode == 1
    assert str(directory / "credentials") in completed.stderr.replace("\n", "")
    assert "secret-without-a-name" not in completed.stderr
    assert "Traceback" not in completed.stderr


def test_status_and_down_need_a_sandbox(tmp_path: Path, sandbox_command: Run) -> None:
    for command in ("status", "down"):
        completed = sandbox_command(command, "--dir", str(tmp_path / "none"))
        assert completed.returncode == 1
        assert "There is no sandbox in" in completed.stderr
        assert not (tmp_path / "none").exists()


@pytest.mark.long
def test_an_up_that_was_killed_is_taken_over(directory: Path, sandbox_command: Run) -> None:
    code = "from lakewright_sandbox.cli import app; app()"
    first = subprocess.Popen([sys.executable, "-c", code, "up", "--dir", str(directory)])
    while not (directory / "sandbox.json").exists():
        assert first.poll() is None
    first.kill()
    first.wait()
    begun = json.loads((directory / "sandbox.json").read_text())
    up(sandbox_command, directory)
    sandbox_command("down", "--dir", str(directory))
    for process_name in ("aws", "lakekeeper"):
        assert processes.command_line(begun[process_name]["pid"]) == []


@pytest.mark.long
def test_two_ups_at_once_make_one_sandbox(directory: Path, sandbox_command: Run) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: up(sandbox_command, directory), range(2))
    assert first == second


@pytest.mark.long
def test_two_sandboxes_are_independent(tmp_path: Path, sandbox_command: Run) -> None:
    directories = [tmp_path / "one", tmp_path / "two"]
    try:
        with ThreadPoolExecutor(2) as pool:
            one, two = pool.map(lambda directory: up(sandbox_command, directory), directories)
        make_bucket(one)
        assert buckets(one) == ["made-before"]
        assert buckets(two) == []
        assert one["admin"] != two["admin"]
        sandbox_command("down", "--dir", str(directories[0]))
        assert sandbox_command("status", "--dir", str(directories[1])).returncode == 0
    finally:
        for directory in directories:
            sandbox_command("down", "--dir", str(directory))


@pytest.mark.long
def test_purge_keeps_files_of_other_users(directory: Path, sandbox_command: Run) -> None:
    state = up(sandbox_command, directory)
    project = create_project(state)
    (directory / "notes.txt").write_text("mine")
    assert sandbox_command("down", "--dir", str(directory), "--purge").returncode == 0
    assert [path.name for path in directory.iterdir()] == ["notes.txt"]
    (directory / "notes.txt").unlink()
    fresh = up(sandbox_command, directory)
    assert fresh["admin"] != state["admin"]
    assert project not in projects(fresh)


@pytest.mark.long
def test_the_users_own_aws_keys_do_not_reach_the_sandbox(directory: Path, sandbox_command: Run) -> None:
    os_environment = {**os.environ, "AWS_SECRET_ACCESS_KEY": "of-a-real-account", "AWS_PROFILE": "production"}
    completed = sandbox_command("up", "--dir", str(directory), "--json", env=os_environment)
    for process_name in ("aws", "lakekeeper"):
        environment = Path(f"/proc/{json.loads(completed.stdout)[process_name]['pid']}/environ").read_bytes()
        assert b"AWS_" not in environment
