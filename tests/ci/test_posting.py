"""Comments, issues and messages over HTTP: created once, updated in place, and without rights in the job's summary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lakewright.ci.errors import CiError, PostError
from lakewright.ci.posting.http import ForgeApi
from lakewright.ci.preview_comment import MARKER
from lakewright.cli.commands.ci import app
from typer.testing import CliRunner, Result

from tests.ci.fake_forge import BOT, TOKEN, FakeForge

PREVIEW = {
    "version": 1,
    "stacks": [{"stack": "acme", "status": "changed", "steps": [{"op": "create", "type": "a:b:C"}]}],
}
DRIFT = {
    "version": 1,
    "stacks": [
        {"stack": "acme", "differences": [{"type": "a:b:Warehouse", "resource": "w", "property": "p", "found": 1}]}
    ],
}
CALM = {"version": 1, "stacks": [{"stack": "acme"}]}


def run(environ: dict[str, str], *arguments: str, document: Any = PREVIEW) -> Result:
    text = document if isinstance(document, str) else json.dumps(document)
    result = CliRunner().invoke(app, list(arguments), input=text, env=environ)
    assert TOKEN not in result.output
    return result


def test_comment_is_created_then_updated(forge: FakeForge, github_job: dict[str, str]) -> None:
    forge.comments += [{"id": -number, "user": BOT, "body": f"comment {number}"} for number in range(1, 151)]

    first = run(github_job, "comment", "--post")
    second = run(github_job, "comment", "--post", document={"version": 1, "stacks": []})

    assert first.exit_code == second.exit_code == 0, first.output + second.output
    (posted_comment,) = [comment for comment in forge.comments if comment["body"].startswith(MARKER)]
    assert "no changes" in posted_comment["body"]
    assert "comment created" in first.stderr
    assert "comment updated" in second.stderr
    assert "https&#58;//github.example/acme/lakehouse/actions/runs/99" in second.stdout
    assert "<code>abc123def456</code>" in second.stdout, "the commit is that of the branch, not of its merge"


def test_comments_of_users_are_left_alone(forge: FakeForge, github_job: dict[str, str]) -> None:
    forge.comments.append({"id": -1, "user": {"login": "mallory", "type": "User"}, "body": f"{MARKER} all is well"})

    run(github_job, "comment", "--post")

    assert len(forge.comments) == 2
    assert forge.comments[0]["body"] == f"{MARKER} all is well"


def test_user_token_updates_its_own_comment_only(forge: FakeForge, github_job: dict[str, str]) -> None:
    forge.user = {"login": "deployer", "type": "User"}
    forge.comments.append({"id": -1, "user": BOT, "body": f"{MARKER} of another bot"})

    run(github_job, "comment", "--post")
    run(github_job, "comment", "--post")

    assert [comment["user"]["login"] for comment in forge.comments] == [BOT["login"], "deployer"]


def test_second_comment_of_a_race_is_removed(forge: FakeForge, github_job: dict[str, str]) -> None:
    forge.comments += [{"id": number, "user": BOT, "body": MARKER} for number in (500, 501)]

    run(github_job, "comment", "--post")

    assert [comment["id"] for comment in forge.comments] == [500]
    assert "| <code>acme</code> |" in forge.comments[0]["body"]


def test_comment_that_another_run_removed_is_no_error(forge: FakeForge) -> None:
    """Two runs at the same time find the same spare comments."""
    api = ForgeApi("GitHub", forge.url, {"authorization": f"Bearer {TOKEN}"})

    api.remove("/repos/acme/lakehouse/issues/comments/500")

    assert forge.calls == ["DELETE /repos/acme/lakehouse/issues/comments/500"]


def test_token_without_rights_writes_the_summary(forge: FakeForge, github_job: dict[str, str]) -> None:
    forge.may_write = False

    result = run(github_job, "comment", "--post")

    assert result.exit_code == 0, result.output
    assert Path(github_job["GITHUB_STEP_SUMMARY"]).read_text() == result.stdout
    assert "in the job's summary instead" in result.stderr


def test_unreadable_preview_replaces_the_old_comment(forge: FakeForge, github_job: dict[str, str]) -> None:
    run(github_job, "comment", "--post")

    result = run(github_job, "comment", "--post", document="Traceback (most recent call last)")

    assert result.exit_code == 1
    assert len(forge.comments) == 1
    assert "### Preview: failed" in forge.comments[0]["body"]


def test_passing_faults_are_repeated(forge: FakeForge, github_job: dict[str, str]) -> None:
    forge.faults = [502, 503]

    assert run(github_job, "comment", "--post").exit_code == 0
    assert len(forge.comments) == 1


def test_creation_is_not_repeated_after_a_fault(forge: FakeForge) -> None:
    """The answer may be lost after the comment was made: a second one would stay."""
    api = ForgeApi("GitHub", forge.url, {"authorization": f"Bearer {TOKEN}"})
    forge.faults = [502]

    with pytest.raises(PostError, match="responded with 502"):
        api.send("POST", "/repos/acme/lakehouse/issues", {"title": "t", "labels": []})

    assert len(forge.calls) == 1


@pytest.mark.parametrize("job", ["github_job", "gitlab_job"])
def test_issue_is_opened_updated_and_closed(forge: FakeForge, job: str, request: pytest.FixtureRequest) -> None:
    environ = request.getfixturevalue(job)

    messages = [
        run(environ, "summary", "--issue", document=report).stderr for report in (DRIFT, DRIFT, CALM, CALM, DRIFT)
    ]

    assert [message.split("issue ")[1].split()[0] for message in messages] == [
        *("created", "updated", "closed", "unchanged", "created")
    ]
    assert [issue["state"] for issue in forge.issues] == ["closed", "open"]
    assert any("No drift in 1 tenant." in comment["body"] for comment in forge.comments)


def test_note_on_gitlab_is_updated_in_place(forge: FakeForge, gitlab_job: dict[str, str]) -> None:
    forge.comments.append({"id": -1, "author": {"id": 6}, "body": f"{MARKER} of a user"})

    results = [run(gitlab_job, "comment", "--post") for _ in range(2)]

    assert [result.exit_code for result in results] == [0, 0], results[0].output
    assert len(forge.comments) == 2
    assert "https&#58;//gitlab.example/pipelines/9" in forge.comments[1]["body"]


def test_webhook_gets_drift_only(forge: FakeForge, github_job: dict[str, str]) -> None:
    environ = github_job | {"LAKEWRIGHT_WEBHOOK_URL": f"{forge.url}/hook/secret"}

    run(environ, "summary", "--webhook", document=CALM)
    run(environ, "summary", "--webhook", document=DRIFT)

    (message,) = forge.messages
    assert message["text"].startswith("*Drift in 1 of 1 tenant")


@pytest.mark.parametrize(
    ("url", "code"),
    [("{url}/elsewhere/T0/secret", 1), ("http://hooks.example.com/T0/secret", 2), ("T0/secret", 2), ("", 2)],
)
def test_webhook_errors_hide_the_url(forge: FakeForge, github_job: dict[str, str], url: str, code: int) -> None:
    environ = github_job | {"LAKEWRIGHT_WEBHOOK_URL": url.format(url=forge.url)}

    result = run(environ, "summary", "--webhook", document=DRIFT)

    assert isinstance(result.exception, CiError)
    assert "secret" not in str(result.exception)
    assert "T0" not in str(result.exception)
    assert getattr(result.exception, "exit_code", 1) == code


@pytest.mark.parametrize("missing", ["GITHUB_TOKEN", "GITHUB_REPOSITORY"])
def test_missing_variables_are_named(github_job: dict[str, str], missing: str) -> None:
    result = run(github_job | {missing: ""}, "comment", "--post")

    assert f"environment variable {missing} is not set" in str(result.exception)


def test_token_is_not_sent_without_tls(github_job: dict[str, str]) -> None:
    result = run(github_job | {"GITHUB_API_URL": "http://api.example.com"}, "comment", "--post")

    assert "expected `https://`, as a token is sent" in str(result.exception)


def pull(sha: str, head: str) -> dict[str, Any]:
    return {"merge_commit_sha": sha, "merged_at": "2026-11-22T10:00:00Z", "head": {"sha": head}}


def preview_run(number: int, head: str, repository: str = "acme/lakehouse", **more: str) -> dict[str, Any]:
    common = {"event": "pull_request", "status": "success", **more}
    return {"id": number, "head_sha": head, "head_repository": {"full_name": repository}, **common}


def test_plans_are_those_of_the_merged_pull_request(forge: FakeForge, github_job: dict[str, str]) -> None:
    forge.pulls = [pull("other", "h0"), pull("abc", "h1")]
    forge.runs = [
        preview_run(1, "h0"),
        preview_run(2, "h1"),
        preview_run(3, "h1"),
        preview_run(9, "h1", "mallory/lakehouse"),
        preview_run(8, "h1", status="failure"),
    ]

    assert run(github_job, "plans-run", "--commit", "abc").stdout == "3\n"


def test_commit_without_plans_is_an_error(forge: FakeForge, github_job: dict[str, str]) -> None:
    result = run(github_job, "plans-run", "--commit", "abc")

    assert result.exit_code == 1
    assert result.stdout == ""
    assert "Run preview.yml manually" in result.stderr


@pytest.mark.parametrize("url", ["https://[hook/secret", f"https://{'a' * 70}.example/hook/secret"])
def test_webhook_that_is_no_address_is_an_error(github_job: dict[str, str], url: str) -> None:
    result = run({**github_job, "LAKEWRIGHT_WEBHOOK_URL": url}, "summary", "--webhook", document=DRIFT)

    assert isinstance(result.exception, CiError)
    assert "secret" not in str(result.exception)
