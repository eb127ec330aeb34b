"""`lakewright ci`: what CI shows of a fleet: comments, summaries, issues and messages."""

from __future__ import annotations

import json
import os
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakewright.ci.drift_summary import SummaryFormat
from lakewright.ci.errors import DocumentError, ForbiddenPostError, SettingError
from lakewright.ci.trust_policies import CiIdentity, CiPurpose
from lakewright.cli.options import HERE, Directory, load_project
from lakewright.cli.stack_argument import CommandLine

if TYPE_CHECKING:
    from lakewright.ci.documents import FleetDrift
    from lakewright.ci.posting.forge import Forge
    from lakewright.ci.preview_comment import CiRun
    from lakewright.ci.publishing.check import DriftCheck

app = CommandLine(
    add_completion=False, no_args_is_help=True, help="Texts, comments and gauges of a fleet for CI and monitoring."
)

DRIFT_LABEL = "lakewright-drift"
"""Label of the issue about drift, by which the next run finds it."""
DRIFT_TITLE = "Drift in the fleet"


class ForgeName(StrEnum):
    """Forges that comments and issues are posted to."""

    AUTO = "auto"
    GITHUB = "github"
    GITLAB = "gitlab"


InputFile = Annotated[Path, typer.Argument(metavar="[FILE]", help="File with the JSON; `-` is standard input.")]
OnForge = Annotated[ForgeName, typer.Option("--forge", help="Where to post. Default: where the job runs.")]
STDIN = Path("-")


@app.command()
def comment(
    file: InputFile = STDIN,
    *,
    post: Annotated[
        bool, typer.Option("--post", help="Create this comment on the pull request, or update it in place.")
    ] = False,
    forge: OnForge = ForgeName.AUTO,
    limit: Annotated[int, typer.Option(min=2000, help="Most characters of the comment.")] = 65_536,
) -> None:
    """Print the comment on a pull request: a table of all tenants' changes, dangerous changes first, and their details.

    The input is the JSON of `lakewright fleet preview --json`. The token is GITHUB_TOKEN or GITLAB_TOKEN. A token that
    may not comment, as that of a fork, writes to the job's summary instead.

    Example: lakewright fleet preview --all --json | lakewright ci comment --post
    """
    from lakewright.ci.documents import read_preview  # noqa: PLC0415 - `--help` needs none of it
    from lakewright.ci.preview_comment import MARKER, render_comment, render_failure  # noqa: PLC0415

    failure: DocumentError | None = None
    try:
        text = render_comment(read_preview(_read(file)), _facts(), limit)
    except DocumentError as error:
        if not post:
            raise
        failure, text = error, render_failure(str(error), _facts())
    print(text, end="")
    if post:
        _post_comment(_forge(forge), MARKER, text)
    if failure:
        raise failure


@app.command()
def summary(
    file: InputFile = STDIN,
    form: Annotated[SummaryFormat, typer.Option("--format", help="Format of the text.")] = SummaryFormat.MARKDOWN,
    *,
    issue: Annotated[
        bool, typer.Option("--issue", help="Open an issue, update the open one, or close it if there is no drift.")
    ] = False,
    webhook: Annotated[
        bool, typer.Option("--webhook", help="Post drift to the Slack-compatible webhook LAKEWRIGHT_WEBHOOK_URL.")
    ] = False,
    forge: OnForge = ForgeName.AUTO,
) -> None:
    """Print a summary of drift: causes on several tenants, each tenant's differences, who and when, what is ignored.

    The input is the JSON of `lakewright drift --json`.

    Example: lakewright drift --all --json | lakewright ci summary --issue
    """
    from lakewright.ci.documents import read_drift  # noqa: PLC0415
    from lakewright.ci.drift_summary import render_summary  # noqa: PLC0415

    drift = read_drift(_read(file))
    print(render_summary(drift, form), end="")
    if issue:
        _post_issue(_forge(forge), drift)
    if webhook:
        _post_message(drift)


@app.command()
def selection(
    base: Annotated[str, typer.Option("--base", help="Commit to compare with HEAD, such as `HEAD^1`.")],
    directory: Directory = HERE,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print the options that select the stacks which a branch changes, one word a line; nothing if there are none.

    A change of anything but stack files and documentation selects all stacks.

    Example: lakewright ci selection --base HEAD^1
    """
    from lakewright.ci.changed_files import list_changed_files  # noqa: PLC0415
    from lakewright.ci.changed_stacks import find_changed_stacks  # noqa: PLC0415

    project = load_project(directory)
    files = list_changed_files(project.root, base)
    folder = os.path.relpath(project.stack_config_dir.resolve(), project.root)
    changed = find_changed_stacks(files.changed, files.removed, folder)
    if changed.cause_for_all:
        print(f"note: all stacks are selected, as {changed.cause_for_all!r} was changed", file=sys.stderr)
    for name in changed.removed:
        print(
            f"warning: the file of stack {name} was removed, but its resources still exist: run `lakewright"
            " destroy` first",
            file=sys.stderr,
        )
    if as_json:
        whole = {"all": bool(changed.cause_for_all), "stacks": changed.names, "removed": changed.removed}
        print(json.dumps(whole | {"cause": changed.cause_for_all, "options": changed.options}, indent=2))
        return
    for word in changed.options:
        print(word)


@app.command("plans-run")
def plans_run(
    commit: Annotated[str, typer.Option("--commit", help="Commit that merged a pull request.")],
    workflow: Annotated[str, typer.Option("--workflow", help="File of the workflow of previews.")] = "preview.yml",
) -> None:
    """Print the id of the GitHub run that has the plans of the pull request which a commit merged.

    Exit code 1 if there is none. Runs of forks do not count.

    Example: lakewright ci plans-run --commit "$GITHUB_SHA"
    """
    from lakewright.ci.posting.github import GitHub  # noqa: PLC0415

    plans_run = GitHub(os.environ).find_plans_run(commit, workflow)
    if plans_run is None:
        print(
            f"error: commit {commit}: expected a merged pull request with a successful run of {workflow}, found none."
            f" Run {workflow} manually, and apply the plans of that run",
            file=sys.stderr,
        )
        raise typer.Exit(1)
    print(plans_run)


@app.command(context_settings={"ignore_unknown_options": True})
def publish(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE | -- drift OPTIONS]", help="File with the JSON, or the check to run after `--`."),
    ] = None,
    *,
    textfile: Annotated[
        Path | None, typer.Option("--textfile", help="Write gauges to this .prom file for node_exporter.")
    ] = None,
    pushgateway: Annotated[
        str | None, typer.Option("--pushgateway", metavar="URL", help="Replace the gauges on this pushgateway.")
    ] = None,
    grouping: Annotated[
        list[str] | None,
        typer.Option("--grouping", metavar="NAME=VALUE", help="Label of the group on the pushgateway; repeatable."),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option(
            "--events", metavar="NAMESPACE/CRONJOB", help="Write Events on tenants' namespaces or this CronJob."
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory", metavar="CONFIGMAP", help="ConfigMap in that namespace with the tenants that had drift."
        ),
    ] = None,
) -> None:
    """Publish drift as Prometheus gauges and Kubernetes Events.

    The input is the JSON of `lakewright drift --json`: a file, `-`, or the output of the check after `--`. That check
    runs as a child: if it is killed, that is published. Exit code 1 if something could not be checked or published;
    0 with drift, which is in the gauges.

    Example: lakewright ci publish --textfile /metrics/drift.prom -- drift --all
    """
    from lakewright.ci.publishing.publish import Targets, parse_event_source, parse_grouping, publish_check  # noqa: PLC0415

    targets = Targets(
        textfile, pushgateway, parse_grouping(grouping or []), parse_event_source(events, memory, os.environ)
    )
    check = _check(words or ["-"])
    publish_check(check, targets, os.environ)
    if not check.is_complete:
        print(f"error: {check.failure or 'something could not be checked'}", file=sys.stderr)
        raise typer.Exit(1)


@app.command()
def dashboard() -> None:
    """Print a dashboard of Grafana for the gauges of `lakewright ci publish`, as JSON to import.

    Example: lakewright ci dashboard > drift.json
    """
    from lakewright.ci.publishing.dashboard import read_dashboard  # noqa: PLC0415

    print(read_dashboard(), end="")


@app.command("trust-policy")
def print_trust_policy(
    purpose: Annotated[CiPurpose, typer.Argument(help="Purpose of the jobs; each purpose has its own role.")],
    account: Annotated[str, typer.Option("--account", help="AWS account of the role.")],
    repository: Annotated[str, typer.Option("--repository", help="OWNER/NAME, or the project's path on GitLab.")],
    *,
    branch: Annotated[str, typer.Option("--branch", help="Branch that is deployed.")] = "main",
    environment: Annotated[
        str, typer.Option("--environment", help="Environment of GitHub whose reviewers approve.")
    ] = "production",
    gitlab: Annotated[str | None, typer.Option("--gitlab", help="Host of GitLab, such as gitlab.com.")] = None,
    owner_id: Annotated[int | None, typer.Option("--owner-id", help="Number of the owner on GitHub.")] = None,
    repository_id: Annotated[int | None, typer.Option("--repository-id", help="Number of the repository.")] = None,
) -> None:
    """Print the trust policy of an IAM role that jobs of CI assume through OIDC, without static keys.

    Tokens of GitHub repositories that were made, renamed or moved since 15 July 2026 contain the numbers of owner and
    repository: `gh api repos/OWNER/NAME --jq '.owner.id, .id'` prints them.

    Example: lakewright ci trust-policy apply --account 123456789012 --repository acme/lakehouse
    """
    from lakewright.ci.trust_policies import build_trust_policy  # noqa: PLC0415

    identity = CiIdentity(account, repository, branch, environment, gitlab, owner_id, repository_id)
    print(json.dumps(build_trust_policy(identity, purpose), indent=2))


def _read(file: Path) -> bytes:
    if file == STDIN:
        return sys.stdin.buffer.read()
    try:
        return file.read_bytes()
    except OSError as error:
        raise DocumentError(f"{file}: expected a file with JSON ({error.strerror})") from None


def _check(words: list[str]) -> DriftCheck:
    """Return the check in a file, or the check that a command runs."""
    from lakewright.ci.documents import read_drift  # noqa: PLC0415
    from lakewright.ci.publishing.check import DriftCheck, run_check  # noqa: PLC0415

    if words[0] in ("drift", "fleet"):
        return run_check(words)
    if len(words) != 1:
        raise SettingError(f"expected one FILE, or `-- drift OPTIONS`; found {' '.join(words)!r}")
    return DriftCheck(read_drift(_read(Path(words[0]))), time.time())


def _facts() -> CiRun:
    from lakewright.ci.posting import github, gitlab  # noqa: PLC0415
    from lakewright.ci.preview_comment import CiRun  # noqa: PLC0415

    if os.environ.get("GITLAB_CI"):
        return CiRun(os.environ.get("CI_COMMIT_SHA", ""), gitlab.read_run_url(os.environ))
    return CiRun(github.read_head_commit(os.environ), github.read_run_url(os.environ))


def _forge(name: ForgeName) -> Forge:
    from lakewright.ci.posting.github import GitHub  # noqa: PLC0415
    from lakewright.ci.posting.gitlab import GitLab  # noqa: PLC0415

    if name is ForgeName.AUTO:
        if os.environ.get("GITHUB_ACTIONS"):
            name = ForgeName.GITHUB
        elif os.environ.get("GITLAB_CI"):
            name = ForgeName.GITLAB
        else:
            raise SettingError(
                "expected a job of GitHub Actions or GitLab CI, found neither: name the forge with --forge"
            )
    return GitHub(os.environ) if name is ForgeName.GITHUB else GitLab(os.environ)


def _post_comment(forge: Forge, marker: str, text: str) -> None:
    from lakewright.ci.posting.github import append_summary  # noqa: PLC0415

    try:
        posted = forge.post_comment(marker, text)
    except ForbiddenPostError as error:
        if not append_summary(os.environ, text):
            raise
        print(f"warning: {error} The comment is in the job's summary instead.", file=sys.stderr)
        return
    print(f"{forge.title}: comment {posted.action} {posted.url}".rstrip(), file=sys.stderr)


def _post_issue(forge: Forge, drift: FleetDrift) -> None:
    from lakewright.ci.drift_summary import format_headline, needs_attention, render_summary  # noqa: PLC0415

    if needs_attention(drift):
        posted = forge.post_issue(DRIFT_LABEL, DRIFT_TITLE, render_summary(drift, SummaryFormat.MARKDOWN))
    else:
        posted = forge.close_issue(DRIFT_LABEL, f"{format_headline(drift)}.")
    print(f"{forge.title}: issue {posted.action} {posted.url}".rstrip(), file=sys.stderr)


def _post_message(drift: FleetDrift) -> None:
    from lakewright.ci.drift_summary import needs_attention, render_summary  # noqa: PLC0415
    from lakewright.ci.posting.webhook import post_message  # noqa: PLC0415

    if not needs_attention(drift):
        print("webhook: nothing to report", file=sys.stderr)
        return
    post_message(os.environ, render_summary(drift, SummaryFormat.SLACK))
    print("webhook: message posted", file=sys.stderr)
