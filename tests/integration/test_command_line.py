"""Every command of the three programs: help with an example, completion, JSON, errors, and no terminal."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from lakewright.cli import main as lakewright
from lakewright.cli.app import LazyGroup, app, load_command
from lakewright_engine.project.project import PulumiProject
from lakewright_engine.state.secrets import PassphraseManager
from lakewright_spark.cli import app as spark_app
from lakewright_spark.cli import main as lakewright_spark

from tests.command_server import LAKEWRIGHT
from tests.tenant_project import PASSPHRASE, REPOSITORY

ANSI = "\x1b["
WITHOUT_JSON = {
    "lakewright stack init": "changes a stack",
    "lakewright stack select": "selects a stack",
    "lakewright stack export": "prints JSON always",
    "lakewright stack import": "changes a stack",
    "lakewright stack rm": "changes a stack",
    "lakewright stack forget": "changes a stack",
    "lakewright adopt consent": "changes objects",
    "lakewright state rm": "changes a state",
    "lakewright state unprotect": "changes a state",
    "lakewright state rename": "changes a state",
    "lakewright config": "has --format json",
    "lakewright config set": "changes settings",
    "lakewright config rm": "changes settings",
    "lakewright init": "writes files",
    "lakewright new": "writes a file",
    "lakewright upgrade": "writes files",
    "lakewright spec schema": "prints JSON always",
    "lakewright byo reserve": "has --format json",
    "lakewright ci comment": "prints Markdown for people",
    "lakewright ci summary": "prints Markdown for people",
    "lakewright ci plans-run": "prints one id",
    "lakewright ci publish": "publishes gauges and Events",
    "lakewright ci trust-policy": "prints JSON always",
    "lakewright ci dashboard": "prints JSON always",
    "lakewright report": "writes a page",
    "lakewright fleet report": "writes a page",
    "lakewright ui": "a server",
    "lakewright completion": "prints a script",
    "lakewright sandbox down": "changes the sandbox",
    "lakewright-spark read": "prints JSON lines always",
    "lakewright-spark connect-server": "a server",
    "lakewright-spark activate": "a server",
    "lakewright-spark jars": "prints two paths",
    "lakewright-spark registry upgrade": "changes a database",
    "lakewright-spark policy set": "changes a table",
    "lakewright-spark policy unset": "changes a table",
}
"""Commands that need no --json, and why."""


def _walk(command: Any, path: list[str]) -> Iterator[tuple[str, Any]]:
    subcommands: dict[str, Any] = getattr(command, "commands", {})
    if not subcommands or command.invoke_without_command:
        yield " ".join(path), command
    for name, subcommand in subcommands.items():
        yield from _walk(subcommand, [*path, name])


def _all_commands() -> dict[str, Any]:
    group = typer.main.get_command(app)
    names = LazyGroup.list_commands(group, None)  # pyright: ignore[reportArgumentType]
    commands = {path: command for name in names for path, command in _walk(load_command(name), ["lakewright", name])}
    return commands | dict(_walk(typer.main.get_command(spark_app), ["lakewright-spark"]))


COMMANDS = _all_commands()


def _call(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[int, str, str]:
    """Call a program in this process. Return exit code, standard output and standard error."""
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as end:
        lakewright(arguments[1:]) if arguments[0] == "lakewright" else lakewright_spark()
    captured = capsys.readouterr()
    return int(end.value.code or 0), captured.out, captured.err


def _run(
    *arguments: str | Path, folder: Path | None = None, environ: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        arguments,
        cwd=folder,
        env={**os.environ, **(environ or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the stacks `acme` and `beta`, which is the working directory."""
    (tmp_path / "Pulumi.yaml").write_text("name: many\nruntime: python\nstackConfigDir: tenants\n")
    (tmp_path / "tenants").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PULUMI_BACKEND_URL", (tmp_path / "state").as_uri())
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    salt = PassphraseManager.create("acme").salt
    for name, label in (("acme", "gold"), ("beta", "silver")):
        spec = f"    name: {name}\n    environment: sandbox\n    labels: {{tier: {label}}}\n"
        text = f"encryptionsalt: {salt}\nconfig:\n  lakewright:tenant:\n{spec}"
        (tmp_path / "tenants" / f"Pulumi.{name}.yaml").write_text(text)
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "sandbox.yaml").write_text("sandbox: ../.sandbox\n")
    return tmp_path


@pytest.mark.parametrize("path", COMMANDS)
def test_help_has_an_example_that_the_command_takes(path: str) -> None:
    command = COMMANDS[path]

    example = re.search(r"Example: (.+)", " ".join((command.help or "").split()))

    assert example, f"{path}: end the docstring with `Example: {path} ...`"
    segments = [shlex.split(part) for part in re.split(r" [|<>] ", example[1])]
    example_arguments = next(segment for segment in segments if segment[: len(path.split())] == path.split())
    command.make_context(path, example_arguments[len(path.split()) :]).close()


@pytest.mark.parametrize("path", COMMANDS)
def test_help_and_errors_need_no_terminal(
    path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb"), ("COLUMNS", "20")):
        monkeypatch.setenv(name, value)

    help_code, help_text, help_errors = _call([*path.split(), "--help"], capsys, monkeypatch)
    code, output, errors = _call([*path.split(), "--no-such-option"], capsys, monkeypatch)

    assert (help_code, help_errors) == (0, "")
    assert ANSI not in help_text + errors
    # A command that runs another command passes unknown options on.
    assert (code, output) == (1 if COMMANDS[path].context_settings.get("ignore_unknown_options") else 2, "")
    assert "no-such-option" in errors.replace("\n", "")
    assert "Traceback" not in errors


@pytest.mark.parametrize("path", COMMANDS)
def test_usage_errors_have_one_form(
    path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, help_text, _ = _call([*path.split(), "-h"], capsys, monkeypatch)
    _, _, errors = _call([*path.split(), "--no-such-option"], capsys, monkeypatch)

    assert (code, f"Usage: {path} " in help_text) == (0, True)
    if not COMMANDS[path].context_settings.get("ignore_unknown_options"):
        assert re.fullmatch(rf"error: no such option: --no-such-option(;|.*\? See|; see) `{path} --help`\n", errors)


@pytest.mark.parametrize(
    ("command_line", "expected"),
    [
        (
            "lakewright fleet listing",
            "error: no such command 'listing'; did you mean 'list'? See `lakewright fleet --help`",
        ),
        (
            "lakewright-spark policies",
            "error: no such command 'policies'; did you mean 'policy'? See `lakewright-spark --help`",
        ),
        (
            "lakewright-spark usage --warehous w",
            "error: no such option: --warehous; did you mean --warehouse? See `lakewright-spark usage --help`",
        ),
        (
            "lakewright-spark job",
            "error: missing argument 'JOB'; see `lakewright-spark job --help`",
        ),
        (
            "lakewright-spark maintain --grace soon",
            "error: invalid value for '--grace': expected a duration such as 90s, 45m, 24h or 7d, found 'soon'; see "
            "`lakewright-spark maintain --help`",
        ),
        (
            "lakewright-spark maintain --job compaction --skip-job retention",
            "error: expected either --job or --skip-job; see `lakewright-spark maintain --help`",
        ),
    ],
)
def test_usage_errors_suggest_the_closest_name(
    command_line: str, expected: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, output, errors = _call(command_line.split(), capsys, monkeypatch)

    assert (code, output, errors) == (2, "", f"{expected}\n")


def test_commands_that_report_have_json() -> None:
    reporting_commands = {
        path for path, command in COMMANDS.items() if any("--json" in parameter.opts for parameter in command.params)
    }

    assert COMMANDS.keys() - reporting_commands == WITHOUT_JSON.keys()


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("lakewright doc", ["doctor"]),
        ("lakewright stack exp", ["export"]),
        ("lakewright fleet preview --parallel-s", ["--parallel-stacks"]),
        ("lakewright up --stack a", ["acme"]),
        ("lakewright fleet up --stack ", ["acme", "beta"]),
        ("lakewright fleet list --label t", ["tier=gold", "tier=silver"]),
        ("lakewright up --engine e", ["embedded"]),
        ("lakewright up b", ["beta"]),
        ("lakewright spec explain ware", ["warehouses"]),
        ("lakewright spec explain warehouses.key", ["warehouses.key_prefix"]),
        ("lakewright spec explain nothing.", []),
        ("lakewright new acme --environment s", ["sandbox"]),
        ("lakewright-spark pol", ["policy"]),
    ],
)
def test_shells_complete(project: Path, typed: str, expected: list[str]) -> None:
    typed_words = typed.split(" ")
    program = LAKEWRIGHT.with_name(typed_words[0])
    variable = f"_{typed_words[0].replace('-', '_').upper()}_COMPLETE"
    environ = {variable: "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed_words) - 1)}

    completed = _run(program, folder=project, environ=environ)

    assert (completed.stdout.split(), completed.stderr) == (expected, "")


URN = "urn:pulumi:acme::many::lakewright:index:Tenant$aws:s3/bucket:Bucket::acme"


def test_urns_complete_in_bash(project: Path) -> None:
    """Bash splits words at colons, and expands what follows a dollar sign."""
    backend = PulumiProject.load(project).backend()
    backend.create("many", "acme", PassphraseManager.create("acme"))
    resources = [{"urn": urn, "type": urn.split("::")[2], "custom": False} for urn in (URN, URN.replace("$aws", ""))]
    exported = backend.export("many", "acme")
    backend.import_("many", "acme", exported | {"deployment": exported["deployment"] | {"resources": resources}})
    script = """
eval "$(lakewright completion bash)"
COMP_WORDS=(lakewright preview --stack acme --target 'urn:pulumi:acme::many::lakewright:index:Tenant\\$')
COMP_CWORD=5
_lakewright_completion lakewright
printf '%s\n' "${COMPREPLY[@]}"
eval "printf '%s\n' ${COMPREPLY[0]}"
[[ $COMP_WORDBREAKS == *:* ]] || echo one word
"""

    completed = _run(
        "bash", "-c", script, folder=project, environ={"PATH": f"{LAKEWRIGHT.parent}:{os.environ['PATH']}"}
    )

    assert completed.stderr == ""
    assert completed.stdout.splitlines() == [URN.replace("$", "\\$"), URN, "one word"]
    assert completed.stderr == ""


def test_stack_names_complete_nowhere_else(tmp_path: Path) -> None:
    environ = {"_LAKEWRIGHT_COMPLETE": "complete_bash", "COMP_WORDS": "lakewright up --stack ", "COMP_CWORD": "3"}

    completed = _run(LAKEWRIGHT, folder=tmp_path, environ=environ)

    assert (completed.returncode, completed.stdout.strip(), completed.stderr) == (0, "", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_of_each_shell(
    shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, script, errors = _call(["lakewright", "completion", shell], capsys, monkeypatch)

    assert (code, errors) == (0, "")
    assert f"_LAKEWRIGHT_COMPLETE=complete_{shell}" in script
    assert f"_LAKEWRIGHT_SPARK_COMPLETE=complete_{shell}" in script
    if shell == "bash":
        assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("command_line", "code"),
    [
        ("stack ls", 0),
        ("stack history --stack acme", 0),
        ("stack output --stack acme", 0),
        ("stack cancel --stack acme", 0),
        ("state ls --stack acme", 0),
        ("spec validate", 1),
        ("fleet list", 0),
        ("doctor", None),
    ],
)
def test_json_is_all_of_standard_output(
    project: Path,
    command_line: str,
    code: int | None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _call(["lakewright", "stack", "init", "acme"], capsys, monkeypatch)

    exit_code, output, _ = _call(["lakewright", *command_line.split(), "--json"], capsys, monkeypatch)

    json.loads(output)
    assert code in (None, exit_code)


def test_a_closed_pipe_is_quiet(project: Path) -> None:
    for command_line in ("spec schema", "--help", "stack ls"):
        completed = _run("bash", "-c", f"{LAKEWRIGHT} {command_line} | head -c 1 >/dev/null", folder=project)

        assert completed.stderr == ""


def test_each_exit_code_is_documented() -> None:
    page = (REPOSITORY / "docs" / "reference" / "exit-codes.md").read_text()
    first, _, second = page.partition("## `lakewright-spark`")
    for folders, text in ((("components/lakewright", "engine/lakewright_engine"), first), (("spark",), second)):
        sources = [file.read_text() for folder in folders for file in (REPOSITORY / folder).rglob("*.py")]
        codes = {code for source in sources for code in re.findall(r"^\s+exit_code(?:: \w+)? = (\d+)$", source, re.M)}

        assert codes
        assert {code for code in codes if f"\n| {code} |" not in text} == set()
