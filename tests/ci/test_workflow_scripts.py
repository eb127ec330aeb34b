"""The scripts of the workflows, run with bash on a project in the sandbox and on a forge over HTTP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from lakewright.ci.preview_comment import MARKER
from lakewright_sandbox.runtime.state import Sandbox

from tests.ci.fake_forge import REPOSITORY as FORGE_REPOSITORY
from tests.ci.fake_forge import TOKEN, FakeForge, serve_forge
from tests.ci.workflow_runner import JobRun, WorkflowRunner
from tests.tenant_project import PASSPHRASE, Tenant, create_project, new_name, tenant_spec

WORKFLOWS = Path(__file__).parents[2] / "examples" / "ci" / "github"

pytestmark = [
    pytest.mark.long,
    pytest.mark.stand_in("runs workflows on a project in the sandbox"),
    pytest.mark.xdist_group("workflows"),
]


@pytest.fixture(scope="module")
def forge() -> Iterator[FakeForge]:
    with serve_forge() as served:
        yield served


@pytest.fixture(scope="module")
def tenant(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> Tenant:
    """A deployed tenant in a git repository."""
    name = new_name()
    folder = tmp_path_factory.mktemp("ci") / "project"
    create_project(folder, {"sandbox": str(sandbox.dir)})
    tenant = Tenant(folder, sandbox, tenant_spec(name, {"backend": "aws", "bucket": f"{name}-lakehouse"}))
    git(folder, "init", "--quiet")
    (folder / ".gitignore").write_text("plans\nstate\n.venv\n*.txt\n*.json\n.*\n")
    tenant.spec["warehouses"][0]["key_prefix"] = "executions"
    tenant.write()
    tenant.output("stack", "init")
    tenant.up()
    commit(folder, "a tenant")
    return tenant


@pytest.fixture(scope="module")
def runner(tenant: Tenant, forge: FakeForge, tmp_path_factory: pytest.TempPathFactory) -> WorkflowRunner:
    home = tmp_path_factory.mktemp("runner")
    event = {"number": 7, "pull_request": {"number": 7, "head": {"sha": "abc123"}, "title": "$(touch /tmp/injected)"}}
    (home / "event.json").write_text(json.dumps(event))
    environ = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": forge.url,
        "GITHUB_REPOSITORY": FORGE_REPOSITORY,
        "GITHUB_SHA": "merged1",
        "GITHUB_EVENT_PATH": str(home / "event.json"),
        "GITHUB_STEP_SUMMARY": str(home / "summary.md"),
    }
    expressions = {
        "github.event_name": "pull_request",
        "github.token": TOKEN,
        "inputs.preview-run": "",
        "vars.PULUMI_BACKEND_URL": (tenant.folder / "state").as_uri(),
        "secrets.PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
        "secrets.LAKEWRIGHT_WEBHOOK_URL": f"{forge.url}/hook/secret",
    }
    return WorkflowRunner(tenant.folder, environ, expressions)


def git(folder: Path, *arguments: str) -> None:
    settings = ("-c", "user.name=tests", "-c", "user.email=tests@example.com")
    subprocess.run(["git", *settings, "-C", str(folder), *arguments], check=True, capture_output=True)


def commit(folder: Path, subject: str) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", subject)


def summary(runner: WorkflowRunner) -> str:
    return Path(runner.environ["GITHUB_STEP_SUMMARY"]).read_text()


@pytest.fixture(scope="module")
def comments(runner: WorkflowRunner, tenant: Tenant, forge: FakeForge) -> list[str]:
    """Texts of the comment after a commit that changes a warehouse, and after one that adds another."""
    texts: list[str] = []
    first, second = tenant.spec["warehouses"][0], {"name": "second", "key_prefix": "second", "deletion": "purge"}
    for warehouses in ([first | {"soft_delete_days": 3}], [first | {"soft_delete_days": 3}, second]):
        tenant.spec["warehouses"] = warehouses
        tenant.write()
        commit(tenant.folder, "a change")
        done = runner.run(WORKFLOWS / "preview.yml", "preview")
        assert not done.failed, done.log
        assert TOKEN not in done.log
        assert PASSPHRASE not in done.log
        texts += [comment["body"] for comment in forge.comments]
    return texts


@pytest.fixture(scope="module")
def apply_run(runner: WorkflowRunner, comments: list[str]) -> JobRun:
    """The plans of the second preview, applied."""
    done = runner.run(WORKFLOWS / "apply.yml", "apply")
    assert not done.failed, done.log
    return done


def test_one_comment_is_updated_in_place(comments: list[str], tenant: Tenant) -> None:
    assert len(comments) == 2, "there is one comment after each run"
    first, second = comments
    assert first.startswith(MARKER)
    assert f"<code>{tenant.name}</code>" in first
    assert f"~ update Warehouse {tenant.name}-executions" in first
    assert "    ~ delete_profile" in first
    assert f"{tenant.name}-second" not in first
    assert f"create Warehouse {tenant.name}-second" in second


def test_plans_are_kept_beside_the_preview(comments: list[str], tenant: Tenant) -> None:
    plan_files = {file.name for file in (tenant.folder / "plans").iterdir()}

    assert plan_files == {"preview.json", f"{tenant.name}.plan.json"}


def test_titles_are_no_commands(comments: list[str]) -> None:
    assert not Path("/tmp/injected").exists()


def test_pull_request_without_changes_has_a_comment(
    runner: WorkflowRunner, tenant: Tenant, forge: FakeForge, apply_run: JobRun
) -> None:
    (tenant.folder / "README.md").write_text("documentation\n")
    commit(tenant.folder, "documentation")

    done = runner.run(WORKFLOWS / "preview.yml", "preview")

    assert not done.failed, done.log
    assert "no changes" in forge.comments[0]["body"]


def test_exactly_the_plan_is_applied(runner: WorkflowRunner, apply_run: JobRun, tenant: Tenant) -> None:
    update = json.loads((tenant.folder / "update.json").read_text())

    assert update["command"] == "up"
    (stack,) = update["stacks"]
    changes = {(step["op"], step["name"]) for step in stack["steps"] if step["type"].endswith(":Warehouse")}
    assert changes == {("update", f"{tenant.name}-executions"), ("create", f"{tenant.name}-second")}
    assert f"<code>{tenant.name}</code>" in summary(runner)


def test_stale_plan_is_refused_with_what_to_do(runner: WorkflowRunner, apply_run: JobRun) -> None:
    """The state moved: this plan has been applied already."""
    done = runner.run(WORKFLOWS / "apply.yml", "apply")

    assert done.failed == "Apply exactly these plans"
    assert "**failed**" in summary(runner)
    assert "Run **Preview** by hand" in summary(runner)


def test_run_of_the_plans_is_found(runner: WorkflowRunner, forge: FakeForge) -> None:
    forge.pulls = [{"merge_commit_sha": "merged1", "merged_at": "2026-11-22T10:00:00Z", "head": {"sha": "abc123"}}]
    repository = {"full_name": FORGE_REPOSITORY}
    forge.runs = [
        {"id": 41, "head_sha": "abc123", "event": "pull_request", "status": "success", "head_repository": repository}
    ]

    automatic_run = runner.run(WORKFLOWS / "apply.yml", "find")
    explicit_run = runner.run(WORKFLOWS / "apply.yml", "find", **{"inputs.preview-run": "17"})
    injected_run = runner.run(WORKFLOWS / "apply.yml", "find", **{"inputs.preview-run": "1\nx=$(id)"})

    assert automatic_run.outputs["find"] == {"preview-run": "41"}, automatic_run.log
    assert explicit_run.outputs["find"] == {"preview-run": "17"}
    assert injected_run.failed == "Find the run with the plans"


def set_protection(tenant: Tenant, *, protected: bool) -> None:
    """Change the warehouse outside the stack."""
    state = json.loads(tenant.output("stack", "export"))["deployment"]["resources"]
    warehouse = next(
        resource for resource in state if resource["urn"].endswith(f":Warehouse::{tenant.name}-executions")
    )
    with httpx.Client(base_url=f"{tenant.sandbox.lakekeeper.endpoint}/management/v1", timeout=30) as http:
        path = f"/warehouse/{warehouse['id']}/protection"
        headers = {"x-project-id": warehouse["outputs"]["project_id"]}
        http.post(path, json={"protected": protected}, headers=headers).raise_for_status()


def test_drift_opens_an_issue_and_its_end_closes_it(
    runner: WorkflowRunner, tenant: Tenant, forge: FakeForge, apply_run: JobRun
) -> None:
    set_protection(tenant, protected=True)
    drifted = runner.run(WORKFLOWS / "drift.yml", "drift")
    opened = [dict(issue) for issue in forge.issues]
    set_protection(tenant, protected=False)
    calm = runner.run(WORKFLOWS / "drift.yml", "drift")

    assert not drifted.failed, drifted.log
    assert drifted.outputs["drift"] == {"status": "7"}
    (issue,) = opened
    assert issue["state"] == "open"
    assert f"<code>{tenant.name}</code>" in issue["body"]
    assert "protected" in issue["body"]
    assert calm.outputs["drift"] == {"status": "0"}, calm.log
    assert [issue["state"] for issue in forge.issues] == ["closed"]
    assert len(forge.messages) == 1, "the webhook gets drift only"


def test_wrong_backend_is_not_reported_as_calm(runner: WorkflowRunner, forge: FakeForge, apply_run: JobRun) -> None:
    """Nothing is checked there. An open issue must not be closed by that."""
    forge.issues.clear()

    runner.run(WORKFLOWS / "drift.yml", "drift", **{"vars.PULUMI_BACKEND_URL": "file:///no/such/folder"})

    (issue,) = forge.issues
    assert issue["state"] == "open"
    assert "no tenant was checked" in issue["body"]
