"""The stack of a command: as an argument, as an option, or the default; and the form of usage errors."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest
from lakewright.cli import main

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a project with the stacks acme and globex."""
    folder = tmp_path_factory.mktemp("template")
    (folder / "Pulumi.yaml").write_text("name: conf\nruntime: python\nstackConfigDir: tenants\n")
    (folder / "__main__.py").write_text("")
    with pytest.MonkeyPatch.context() as monkeypatch:
        enter(folder, monkeypatch)
        for stack in ("acme", "globex"):
            assert run("stack", "init", stack) == 0
            assert run("config", "set", "region", f"{stack}-1", "--stack", stack) == 0
    return folder


@pytest.fixture
def project(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project of its own with the stacks acme and globex."""
    folder = shutil.copytree(template, tmp_path / "project")
    enter(folder, monkeypatch)
    return folder


def enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change into a project, with a passphrase and a backend in its folder."""
    (folder / "state").mkdir(exist_ok=True)
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{folder / 'state'}")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "demo")
    monkeypatch.delenv("LAKEWRIGHT_STACK", raising=False)
    monkeypatch.chdir(folder)


def run(*arguments: str) -> int:
    """Run a command in this process. Return its exit code."""
    with pytest.raises(SystemExit) as ended:
        main([*arguments])
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    "arguments",
    [
        ["config", "get", "acme", "region"],
        ["config", "get", "region", "--stack", "acme"],
        ["config", "get", "-s", "acme", "region"],
    ],
    ids=" ".join,
)
def test_a_stack_is_an_argument_or_an_option(project: Path, capsys: Captured, arguments: list[str]) -> None:
    capsys.readouterr()
    assert run(*arguments) == 0
    assert capsys.readouterr().out == "acme-1\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["config", "acme"],
        ["stack", "output", "acme"],
        ["stack", "history", "acme"],
        ["stack", "export", "acme"],
        ["stack", "cancel", "acme", "--yes"],
        ["state", "ls", "acme"],
        ["external-ids", "acme"],
        ["fleet", "list", "acme"],
        ["stack", "rm", "acme", "--yes"],
    ],
    ids=" ".join,
)
def test_commands_take_the_stack_as_an_argument(project: Path, arguments: list[str]) -> None:
    assert run(*arguments) == 0


def test_a_word_is_the_stack_if_a_stack_has_that_name(project: Path, capsys: Captured) -> None:
    assert run("config", "set", "acme", "zone", "b") == 0
    assert run("config", "set", "zone", "c", "--stack", "globex") == 0
    capsys.readouterr()
    assert run("config", "get", "acme", "zone") == run("config", "get", "globex", "zone") == 0
    assert capsys.readouterr().out == "b\nc\n"
    # `acme` is a key here, as the option names the stack.
    assert run("config", "set", "acme", "d", "--stack", "globex") == 0


def test_a_stack_that_is_named_twice_is_refused(project: Path, capsys: Captured) -> None:
    assert run("stack", "output", "acme", "--stack", "globex") == 1  # globex has no output `acme`
    assert run("state", "ls", "acme", "--stack", "globex") == 2
    assert "named twice: `acme` and `--stack globex`" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["config", "--stack", "globex", "set", "region", "b"],
        ["config", "-s", "globex", "set", "region", "b", "--stack", "globex"],
        ["config", "-C", "PROJECT", "--stack", "globex", "set", "region", "b"],
        ["config", "-C", "PROJECT", "set", "region", "b", "--stack", "globex"],
    ],
    ids=" ".join,
)
def test_a_command_takes_stack_and_folder_of_its_group(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setenv("LAKEWRIGHT_STACK", "acme")
    if "PROJECT" in arguments:
        monkeypatch.chdir(tmp_path)
    before = (project / "tenants" / "Pulumi.acme.yaml").read_text()

    assert run(*[str(project) if word == "PROJECT" else word for word in arguments]) == 0

    assert "conf:region: b" in (project / "tenants" / "Pulumi.globex.yaml").read_text()
    assert (project / "tenants" / "Pulumi.acme.yaml").read_text() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["config", "--stack", "globex", "get", "region", "--stack", "acme"],
        ["config", "--stack", "globex", "get", "acme", "region"],
        ["config", "-C", ".", "get", "region", "--stack", "acme", "-C", "tenants"],
    ],
    ids=" ".join,
)
def test_a_group_and_its_command_name_one_stack(project: Path, capsys: Captured, arguments: list[str]) -> None:
    capsys.readouterr()
    assert run(*arguments) == 2
    assert not capsys.readouterr().out


def test_the_variable_and_the_selection_are_defaults(
    project: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("config", "get", "region") == 2
    assert "name the stack: `lakewright config get STACK`" in capsys.readouterr().err
    assert run("stack", "select", "acme") == 0
    assert run("config", "get", "region") == 0
    printed = capsys.readouterr()
    assert printed.out.endswith("\nacme-1\n")
    assert "Stack: acme (selected with `lakewright stack select`)" in printed.err
    monkeypatch.setenv("LAKEWRIGHT_STACK", "globex")
    assert run("config", "get", "region") == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("globex-1\n", "Stack: globex (LAKEWRIGHT_STACK)\n")


def test_only_existing_stacks_are_selected(project: Path, capsys: Captured) -> None:
    assert run("stack", "select", "acm") == 6
    assert "no stack named 'acm' found; did you mean `acme`?" in capsys.readouterr().err
    assert run("stack", "select") == 0
    assert capsys.readouterr().out == "No stack is selected.\n"
    assert run("stack", "select", "acme") == run("stack", "select") == run("stack", "select", "--clear") == 0
    assert run("state", "ls") == 2


def test_a_fleet_does_not_use_the_default(project: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEWRIGHT_STACK", "globex")
    capsys.readouterr()
    assert run("fleet", "list", "--json") == 0
    assert [entry["stack"] for entry in json.loads(capsys.readouterr().out)["stacks"]] == ["acme", "globex"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["prewiev"], "no command `prewiev`; did you mean `preview`? `lakewright --help` lists the commands"),
        (["frobnicate"], "no command `frobnicate`; `lakewright --help` lists the commands"),
        (["stack", "outputs"], "no such command 'outputs'; did you mean 'output'? See `lakewright stack --help`"),
        (["config", "gett"], "no such command 'gett'; did you mean 'get'? See `lakewright config --help`"),
        (["up", "--refrsh"], "no such option: --refrsh; did you mean --refresh? See `lakewright up --help`"),
        (["--versio"], "no such option: --versio; did you mean --version? See `lakewright --help`"),
        (["up", "a", "b"], "got unexpected extra argument(s) (b); see `lakewright up --help`"),
        (
            ["up", "a", "--engine", "steam"],
            "invalid value for '--engine': 'steam' is not one of 'auto', 'embedded', 'pulumi'; see `lakewright",
        ),
        (["state", "rename", "a"], "missing argument 'name'; see `lakewright state rename --help`"),
        (["preview", "acm", "--engine", "embedded"], "no stack named 'acm' found; did you mean `acme`? `lakewright"),
        (["fleet", "list", "acm"], "did you mean `acme`? `lakewright fleet list` lists them"),
    ],
)
def test_usage_errors_are_one_line_with_a_remedy(
    project: Path, capsys: Captured, arguments: list[str], message: str
) -> None:
    capsys.readouterr()
    assert run(*arguments) in (2, 6, 1)
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert message in line


@pytest.mark.parametrize(
    "arguments", [[], ["up"], ["stack"], ["stack", "ls"], ["fleet", "up"], ["config", "set"]], ids=" ".join
)
def test_h_prints_the_help(capsys: Captured, arguments: list[str]) -> None:
    assert run(*arguments, "-h") == 0
    assert "Usage: lakewright" in capsys.readouterr().out


def test_an_empty_secret_is_refused(project: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (project / "tenants" / "Pulumi.acme.yaml").read_text()
    for empty in ("", "\n", "  \n"):
        monkeypatch.setattr("sys.stdin", io.StringIO(empty))
        assert run("config", "set", "token", "--secret", "--stack", "acme") == 2
    assert run("config", "set", "token", "", "--secret", "--stack", "acme") == 2
    assert (project / "tenants" / "Pulumi.acme.yaml").read_text() == before
    assert "config set --secret token: the value is empty, so nothing was changed" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO("s3cret\n"))
    assert run("config", "set", "token", "--secret", "--stack", "acme") == 0
    printed = capsys.readouterr()
    assert printed.out == "Encrypted token in tenants/Pulumi.acme.yaml.\n"
    assert "s3cret" not in printed.out + printed.err
