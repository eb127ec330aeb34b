"""The files to copy into a CI: what actionlint finds, and rules about rights, pinned actions and injected text."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ci.workflow_runner import WorkflowRunner

REPOSITORY = Path(__file__).parents[2]
GITHUB = REPOSITORY / "examples" / "ci" / "github"
GITLAB = REPOSITORY / "examples" / "ci" / "gitlab" / ".gitlab-ci.yml"
WORKFLOWS = sorted(GITHUB.glob("*.yml"))
PURPOSES = {"AWS_PREVIEW_ROLE": "preview", "AWS_APPLY_ROLE": "apply", "AWS_DRIFT_ROLE": "drift"}

pinned = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}")


@pytest.fixture(scope="session")
def actionlint() -> str:
    """The path of actionlint, which is built once; without its sources the test is skipped."""
    command = [REPOSITORY / "scripts" / "go_program.sh", Path(__file__).parent / "actionlint"]
    command.append(Path("github.com/rhysd/actionlint/cmd/actionlint"))
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.skip(f"actionlint cannot be built here: {built.stderr.strip().splitlines()[-1]}")
    return built.stdout.strip()


def load(file: Path) -> dict[str, Any]:
    # YAML 1.1 reads the key `on` as true.
    return {("on" if key is True else key): value for key, value in yaml.safe_load(file.read_text()).items()}


def steps(file: Path) -> list[dict[str, Any]]:
    return [step for job in load(file)["jobs"].values() for step in job["steps"]]


def test_actionlint_finds_nothing(actionlint: str) -> None:
    # Other linters that may be on the PATH are not part of the test.
    command = [actionlint, "-shellcheck=", "-pyflakes=", *map(str, WORKFLOWS)]

    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=REPOSITORY)

    assert result.returncode == 0, result.stdout


def test_actionlint_would_find_an_injection(actionlint: str, tmp_path: Path) -> None:
    text = (GITHUB / "preview.yml").read_text()
    worse = text.replace("run: lakewright spec validate", 'run: echo "${{ github.event.pull_request.title }}"')
    (tmp_path / "preview.yml").write_text(worse)

    command = [actionlint, "-shellcheck=", "-pyflakes=", str(tmp_path / "preview.yml")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)

    assert '"github.event.pull_request.title" is potentially untrusted' in result.stdout


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_actions_are_pinned_with_their_version(file: Path) -> None:
    lines = [line for line in file.read_text().splitlines() if "uses:" in line]

    assert lines
    for line in lines:
        action, _, version = line.partition("uses:")[2].partition("#")
        assert pinned.fullmatch(action.strip()), line
        assert re.fullmatch(r" v\d+\.\d+\.\d+", version), line


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_scripts_contain_no_expressions(file: Path) -> None:
    assert not [step["run"] for step in steps(file) if "${{" in step.get("run", "")]


@pytest.mark.parametrize(
    ("name", "rights"),
    [
        (
            "preview",
            {
                "validate": {"contents": "read"},
                "preview": {"contents": "read", "id-token": "write", "pull-requests": "write"},
            },
        ),
        (
            "apply",
            {
                "find": {"contents": "read", "actions": "read", "pull-requests": "read"},
                "apply": {"contents": "read", "actions": "read", "id-token": "write"},
            },
        ),
        ("drift", {"drift": {"contents": "read", "id-token": "write", "issues": "write"}}),
    ],
)
def test_jobs_have_the_least_rights(name: str, rights: dict[str, Any]) -> None:
    workflow = load(GITHUB / f"{name}.yml")

    assert workflow["permissions"] == {}
    assert {job: settings["permissions"] for job, settings in workflow["jobs"].items()} == rights


@pytest.mark.parametrize("file", [*WORKFLOWS, GITLAB], ids=lambda file: file.stem)
def test_no_static_key_is_used(file: Path) -> None:
    text = file.read_text()

    assert not re.search(r"aws-access-key-id|AWS_ACCESS_KEY_ID|AWS_SECRET_ACCESS_KEY|pull_request_target", text)


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_secrets_are_in_single_steps(file: Path) -> None:
    """A secret is in the environment of the step that needs it; the webhook's URL decides about a step."""
    for job in load(file)["jobs"].values():
        whole = [value for value in job.get("env", {}).values() if "secrets." in value]
        assert whole in ([], ["${{ secrets.LAKEWRIGHT_WEBHOOK_URL }}"])
    for step in steps(file):
        secret = [value for value in step.get("env", {}).values() if "secrets." in value]
        assert not secret or "lakewright" in step["run"]


def test_changes_are_approved_and_one_at_a_time() -> None:
    job = load(GITHUB / "apply.yml")["jobs"]["apply"]

    assert job["environment"] == "production"
    assert job["concurrency"] == {"group": "apply", "cancel-in-progress": False}
    assert [name for name, other in load(GITHUB / "apply.yml")["jobs"].items() if "AWS" in str(other)] == ["apply"]


@pytest.mark.parametrize(
    ("status", "failed"), [("not deployed", ""), ("changed", "Apply exactly these plans")], ids=["new", "deployed"]
)
def test_merge_that_only_adds_tenants_needs_no_plan(tmp_path: Path, status: str, failed: str) -> None:
    (tmp_path / "plans").mkdir()
    preview = {"version": 1, "command": "preview", "stacks": [{"stack": "acme", "status": status}]}
    (tmp_path / "plans" / "preview.json").write_text(json.dumps(preview))
    summary = tmp_path / "summary.md"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    expressions = {"vars.PULUMI_BACKEND_URL": "file:///unused", "secrets.PULUMI_CONFIG_PASSPHRASE": "unused"}
    runner = WorkflowRunner(tmp_path, {"PATH": path, "GITHUB_STEP_SUMMARY": str(summary)}, expressions)

    done = runner.run(GITHUB / "apply.yml", "apply")

    assert done.failed == failed, done.log
    hint = "not deployed; `lakewright fleet up --create` creates its stack"
    assert (hint in summary.read_text()) is not bool(failed)


def test_previews_of_forks_get_no_credentials() -> None:
    jobs = load(GITHUB / "preview.yml")["jobs"]

    assert "github.event.pull_request.head.repo.full_name == github.repository" in jobs["preview"]["if"]
    assert "secrets." not in str(jobs["validate"])
    assert "id-token" not in str(jobs["validate"])


@pytest.mark.parametrize("file", [*WORKFLOWS, GITLAB], ids=lambda file: file.stem)
def test_each_job_has_the_role_of_its_purpose(file: Path) -> None:
    """The roles are those that `lakewright ci trust-policy` describes."""
    used = set(re.findall(r"AWS_[A-Z]+_ROLE\b", file.read_text()))

    assert used
    assert used <= set(PURPOSES)


def test_checkouts_leave_no_token_behind() -> None:
    checkouts = [step for file in WORKFLOWS for step in steps(file) if "actions/checkout@" in step.get("uses", "")]

    assert len(checkouts) == 5
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


@pytest.mark.parametrize(
    ("schema", "files"),
    [("vendor.gitlab-ci", [GITLAB]), ("vendor.github-workflows", WORKFLOWS)],
    ids=["gitlab", "github"],
)
def test_files_have_the_form_of_the_schema(schema: str, files: list[Path]) -> None:
    """The schemas are those of SchemaStore, which come with check-jsonschema."""
    program = Path(sys.executable).with_name("check-jsonschema")

    result = subprocess.run([program, "--builtin-schema", schema, *files], capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stdout


def jobs_of_gitlab() -> dict[str, dict[str, Any]]:
    whole = yaml.safe_load(GITLAB.read_text())
    return {name: job for name, job in whole.items() if isinstance(job, dict) and "script" in job}


def test_gitlab_jobs_have_stages_rules_and_oidc() -> None:
    whole, jobs = yaml.safe_load(GITLAB.read_text()), jobs_of_gitlab()

    assert set(jobs) == {"preview", "plan", "apply", "drift"}
    assert all(job["stage"] in whole["stages"] for job in jobs.values())
    assert all(job["rules"] and job["extends"] == ".lakewright" for job in jobs.values())
    assert set(whole[".lakewright"]["id_tokens"]) == {"AWS_TOKEN"}


def test_gitlab_applies_by_hand_what_was_planned() -> None:
    jobs = jobs_of_gitlab()
    apply = jobs["apply"]

    assert apply["needs"] == ["plan"]
    assert apply["rules"][0]["when"] == "manual"
    assert apply["resource_group"] == apply["environment"] == "production"
    assert jobs["plan"]["rules"][0]["if"] == apply["rules"][0]["if"]
    assert jobs["plan"]["artifacts"]["paths"] == ["plans/"]


def test_gitlab_previews_of_forks_get_no_credentials() -> None:
    (rule,) = jobs_of_gitlab()["preview"]["rules"]

    assert "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID" in rule["if"]


def test_gitlab_needs_no_plan_if_no_stack_is_deployed(tmp_path: Path) -> None:
    (tmp_path / "plans").mkdir()
    script = "\n".join(jobs_of_gitlab()["apply"]["script"])
    environment = os.environ | {"AWS_APPLY_ROLE": "unused"}

    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert "`lakewright fleet up --create --yes` creates the stacks" in done.stdout
