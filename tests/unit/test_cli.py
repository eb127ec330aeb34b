"""The command line: fast start, one message for an error, and no traceback."""

import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pytest
from lakewright.cli import main

from tests.tenant_project import REPOSITORY

HEAVY = ("pulumi", "boto3", "httpx", "kubernetes", "grpc", "lakewright_engine")


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that is the working directory."""
    (tmp_path / "Pulumi.yaml").write_text("name: conf\nruntime: python\n")
    (tmp_path / "__main__.py").write_text("import pulumi\npulumi.export('answer', 42)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path / 'state'}")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "p")
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def lakewright(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Done]:
    """Return a function that calls the command line in the folder."""

    def call(*arguments: str, stdin: str = "", **environment: str) -> Done:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.StringIO(stdin))
            for name, value in environment.items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as end:
                main(list(arguments))
        captured = capsys.readouterr()
        return Done(int(end.value.code or 0), captured.out, captured.err)

    return call


@pytest.mark.parametrize("command", ["", "up", "stack", "config"])
def test_help_imports_nothing_heavy(command: str) -> None:
    script = f"""
import sys
from lakewright.cli import main
try:
    main([*{command.split()!r}, "--help"])
except SystemExit as end:
    loaded = [name for name in {HEAVY!r} if name in sys.modules]
    sys.exit(f"loaded {{loaded}}" if loaded or end.code else 0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_validation_loads_no_sdk_and_no_client(folder: Path) -> None:
    (folder / "__main__.py").write_text("from lakewright import declare_tenant\n")
    shutil.copy(REPOSITORY / "tests" / "unit" / "spec" / "Pulumi.acme.yaml", folder)
    (folder / "environments").mkdir()
    (folder / "environments" / "production.yaml").write_text("sandbox: nowhere\n")
    heavy = [name for name in HEAVY if name != "lakewright_engine"]
    script = f"""
import sys
from lakewright.cli import main
try:
    main(["spec", "validate"])
except SystemExit as end:
    loaded = [name for name in {heavy!r} if name in sys.modules]
    sys.exit(f"loaded {{loaded}}" if loaded or end.code else 0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Pulumi.acme.yaml: valid" in done.stdout


def test_help_lists_commands_of_other_packages(lakewright: Callable[..., Done]) -> None:
    text = lakewright("--help").stdout
    for name in ("preview", "up", "refresh", "destroy", "stack", "config", "new", "spec", "doctor", "sandbox"):
        assert f" {name} " in text


def test_stack_from_init_to_removal(folder: Path, lakewright: Callable[..., Done]) -> None:
    assert lakewright("stack", "init", "dev").stdout == "Created stack 'dev'\n"
    assert "encryptionsalt" in (folder / "Pulumi.dev.yaml").read_text()
    assert lakewright("stack", "ls").stdout.splitlines()[1].split()[0] == "dev"
    done = lakewright("up", "--stack", "dev", "--yes", "--engine", "embedded")
    assert (done.returncode, done.stderr) == (0, "Engine: embedded (chosen with --engine)\n")
    assert lakewright("stack", "output", "answer", "--stack", "dev").stdout == "42\n"
    assert json.loads(lakewright("stack", "output", "--json", "--stack", "dev").stdout) == {"answer": 42}
    exported = lakewright("stack", "export", "--stack", "dev").stdout
    imported = lakewright("stack", "import", "--stack", "dev", stdin=exported)
    assert imported.stdout == "Import complete.\n"
    assert lakewright("stack", "export", "--stack", "dev").stdout == exported
    refused = lakewright("stack", "rm", "--stack", "dev", "--yes")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    lakewright("destroy", "--stack", "dev", "--yes", "--engine", "embedded")
    removed = lakewright("stack", "rm", "--stack", "dev", "--yes")
    spec = folder / "Pulumi.dev.yaml"
    assert removed.stdout == f"Stack 'dev' has been removed!\nKept {spec}\n"
    assert spec.exists()

    lakewright("stack", "init", "--stack", "dev")
    removed_with_spec = lakewright("stack", "rm", "--stack", "dev", "--yes", "--remove-spec")
    assert removed_with_spec.stdout == f"Stack 'dev' has been removed!\nDeleted {spec}\n"
    assert not spec.exists()


def test_forgotten_resources_keep_existing(folder: Path, lakewright: Callable[..., Done]) -> None:
    lakewright("stack", "init", "--stack", "dev")
    (folder / "__main__.py").write_text("import pulumi\npulumi.ComponentResource('a:b:C', 'kept')\n")
    lakewright("up", "--stack", "dev", "--yes", "--engine", "embedded")
    assert lakewright("stack", "forget", "--stack", "dev").returncode == 2, "it asks"

    forgotten = lakewright("stack", "forget", "--stack", "dev", "--yes")

    assert "urn:pulumi:dev::conf::a:b:C::kept\n" in forgotten.stdout
    assert "has forgotten 2 resources" in forgotten.stdout
    assert lakewright("state", "ls", "--stack", "dev").stdout == ""
    assert lakewright("stack", "forget", "--stack", "dev", "--yes").stdout == "Stack 'dev' has no resources.\n"
    assert lakewright("stack", "import", "--stack", "dev", "--backup").returncode == 0
    assert "a:b:C::kept" in lakewright("state", "ls", "--stack", "dev").stdout


def test_json_is_one_object_and_nothing_else(lakewright: Callable[..., Done]) -> None:
    lakewright("stack", "init", "--stack", "dev")
    done = lakewright("up", "--stack", "dev", "--yes", "--json", "--engine", "embedded")
    report = json.loads(done.stdout)
    assert list(report) == ["version", "steps", "changes", "outputs", "exit", "messages"]
    assert (report["changes"], report["outputs"], report["exit"]) == ({"create": 1}, {"answer": 42}, 0)
    wrong = lakewright("preview", "--stack", "nope", "--json", "--engine", "embedded")
    assert json.loads(wrong.stdout)["exit"] == wrong.returncode == 6


@pytest.mark.parametrize("verb", ["preview", "up", "refresh", "destroy"])
@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["--stack", "nope"], 6, "no stack named 'nope' found"),
        (["--stack", "dev", "-C", "/nowhere"], 1, "-C /nowhere: No such file or directory"),
        (["--stack", "dev", "-C", ".."], 1, "Pulumi.yaml"),
        (["--stack", "dev", "--engine", "steam"], 2, "invalid value for '--engine'"),
        (["--stack", "dev", "--sideways"], 2, "no such option: --sideways"),
        ([], 2, "--stack"),
    ],
)
def test_json_is_one_object_for_every_failure(
    verb: str, arguments: list[str], exit_code: int, message: str, lakewright: Callable[..., Done]
) -> None:
    yes = [] if verb == "preview" else ["--yes"]
    engine = [] if "--engine" in arguments else ["--engine", "embedded"]
    failed = lakewright(verb, *arguments, *yes, *engine, "--json")
    report = json.loads(failed.stdout)
    assert list(report) == ["version", "steps", "changes", "outputs", "exit", "messages"]
    assert report["exit"] == failed.returncode == exit_code
    assert any(message in line for line in report["messages"])


def test_json_without_yes_is_an_error_in_json(lakewright: Callable[..., Done]) -> None:
    lakewright("stack", "init", "--stack", "dev")
    failed = lakewright("up", "--stack", "dev", "--json")
    assert json.loads(failed.stdout)["exit"] == failed.returncode == 2
    assert "--yes" in json.loads(failed.stdout)["messages"][0]


def test_config_is_set_read_and_removed(folder: Path, lakewright: Callable[..., Done]) -> None:
    lakewright("stack", "init", "--stack", "dev")
    lakewright("config", "set", "size", "5", "--stack", "dev")
    lakewright("config", "set", "token", "--secret", "--stack", "dev", stdin="hush\n")
    assert "hush" not in (folder / "Pulumi.dev.yaml").read_text()
    assert lakewright("config", "get", "token", "--stack", "dev").stdout == "hush\n"
    listing = lakewright("config", "--stack", "dev").stdout
    assert "[secret]" in listing
    assert "hush" not in listing
    lakewright("config", "rm", "size", "--stack", "dev")
    missing = lakewright("config", "get", "size", "--stack", "dev")
    assert (missing.returncode, missing.stderr) == (1, "error: configuration key 'size' not found for stack 'dev'\n")
    as_json = lakewright("config", "get", "token", "--json", "--stack", "dev").stdout
    assert json.loads(as_json) == {"value": "hush", "secret": True}


@pytest.mark.parametrize(
    ("arguments", "environment", "exit_code", "message"),
    [
        (["preview", "--stack", "nope"], {}, 6, "no stack named 'nope' found"),
        (["up", "--stack", "dev"], {}, 2, "--yes"),
        (["up", "--stack", "dev", "--yes", "--engine", "steam"], {}, 2, "is not one of"),
        (["up", "--stack", "dev", "--yes"], {"PULUMI_CONFIG_PASSPHRASE": "wrong"}, 1, "incorrect passphrase"),
        (["up", "--stack", "dev", "--yes"], {"PULUMI_BACKEND_URL": "gs://b"}, 1, "file:// and s3:// backends only"),
        (["stack", "ls", "-C", "/"], {}, 1, "no Pulumi.yaml found"),
        (["stack", "output", "nope", "--stack", "dev"], {}, 1, "does not have output property 'nope'"),
        (["stack", "init", "--stack", "dev"], {}, 1, "already exists"),
        (["stack", "init", "--stack", "../up"], {}, 1, "not a stack name"),
        (["config", "set", "a[", "1", "--path", "--stack", "dev"], {}, 1, "not a path"),
        (["config"], {}, 2, "--stack STACK"),
        (["up", "--stack", "dev", "--yes", "--target", "a", "--exclude", "b"], {}, 2, "cannot be combined"),
        (["destroy", "--stack", "dev", "--yes", "--target-dependents"], {}, 2, "requires --target"),
        (["refresh", "--stack", "dev", "--yes", "--exclude-dependents"], {}, 2, "requires --exclude"),
    ],
)
def test_each_error_is_one_message(
    lakewright: Callable[..., Done], arguments: list[str], environment: dict[str, str], exit_code: int, message: str
) -> None:
    lakewright("stack", "init", "--stack", "dev")
    lakewright("config", "set", "token", "x", "--secret", "--stack", "dev")
    verb = [] if arguments[0] in ("stack", "config") or "--engine" in arguments else ["--engine", "embedded"]
    done = lakewright(*arguments, *verb, **environment)
    assert message in done.stderr
    assert done.returncode == exit_code
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("Engine:")]
    assert len(lines) == 1


def test_damaged_state_is_named_and_debug_shows_where(folder: Path, lakewright: Callable[..., Done]) -> None:
    lakewright("stack", "init", "--stack", "dev")
    file = folder / "state" / ".pulumi" / "stacks" / "conf" / "dev.json"
    file.write_text("{")
    done = lakewright("preview", "--stack", "dev", "--engine", "embedded")
    assert done.returncode == 1
    assert str(file) in done.stderr
    assert "Traceback" not in done.stderr
    debugged = lakewright("preview", "--stack", "dev", "--engine", "embedded", LAKEWRIGHT_DEBUG="1")
    assert "Traceback" in debugged.stderr


def test_locked_stack_names_the_lock_holder(folder: Path, lakewright: Callable[..., Done]) -> None:
    lakewright("stack", "init", "--stack", "dev")
    locks = folder / "state" / ".pulumi" / "locks" / "organization" / "conf" / "dev"
    locks.mkdir(parents=True)
    holder = {"pid": 1, "username": "ada", "hostname": "elsewhere", "timestamp": "2026-11-21T00:00:00Z"}
    (locks / "one.json").write_text(json.dumps(holder))
    done = lakewright("up", "--stack", "dev", "--yes", "--engine", "embedded")
    assert done.returncode == 1
    assert "ada@elsewhere (pid 1)" in done.stderr
    assert "lakewright stack cancel --stack dev" in done.stderr
    assert "Removed one.json" in lakewright("stack", "cancel", "--stack", "dev").stdout
    assert lakewright("up", "--stack", "dev", "--yes", "--engine", "embedded").returncode == 0


def test_relative_paths_start_at_the_folder_of_c(
    folder: Path, lakewright: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    lakewright("stack", "init", "dev", "-C", "..", PULUMI_BACKEND_URL="file://./here")
    assert (folder / "here" / ".pulumi" / "stacks" / "conf" / "dev.json").is_file()
    missing = lakewright("stack", "ls", "-C", "nowhere")
    assert (missing.returncode, missing.stderr) == (1, "error: -C nowhere: No such file or directory\n")


def test_project_of_a_relative_folder_is_validated(
    folder: Path, lakewright: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project file with a mistake is an error, not a folder outside a project."""
    (folder / "elsewhere").mkdir()
    (folder / "Pulumi.acme.yaml").write_text("config:\n  a: 1\n  a: 2\n")
    monkeypatch.chdir(folder / "elsewhere")
    validated = lakewright("spec", "validate", "-C", "..")
    assert (validated.returncode, "Pulumi.acme.yaml:3:3: expected YAML: key 'a'" in validated.stderr) == (1, True)
    (folder / "Pulumi.yaml").write_text("name: [")
    validated = lakewright("spec", "validate", "Pulumi.acme.yaml")
    assert (validated.returncode, "Pulumi.yaml:1:8: expected YAML" in validated.stderr) == (1, True)


def test_terminal_without_yes_gets_preview_and_prompt(
    lakewright: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    lakewright("stack", "init", "dev")
    for answer, code, created in (("no", 1, False), ("yes", 0, True)):
        monkeypatch.setattr("lakewright.cli.commands.operations.is_interactive", lambda: True)
        done = lakewright("up", "--stack", "dev", "--engine", "embedded", stdin=f"details\n{answer}\n")
        assert "Previewing update (dev):" in done.stdout
        assert "Do you want to perform this update? [yes/no/details]" in done.stdout + done.stderr
        assert ("Updating (dev):" in done.stdout) == created
        assert done.returncode == code


@pytest.mark.parametrize("program", ["lakewright", "lakewright-spark"])
def test_version_is_the_installed_one(program: str) -> None:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{program} {version(program)}\n"


def test_state_is_listed_renamed_and_removed(folder: Path, lakewright: Callable[..., Done]) -> None:
    lakewright("stack", "init", "dev")
    lakewright("up", "--stack", "dev", "--yes", "--engine", "embedded")
    (urn,) = lakewright("state", "ls", "--stack", "dev").stdout.splitlines()
    assert lakewright("state", "rm", urn, "--stack", "dev").returncode == 2
    refused = lakewright("state", "rm", "urn:pulumi:dev::x::y::z", "--stack", "dev", "--yes")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    renamed = lakewright("state", "rename", urn, "other", "--stack", "dev", "--yes")
    new = urn.rpartition("::")[0] + "::other"
    assert renamed.stdout == f"Renamed {urn} to {new}\n"
    assert lakewright("state", "unprotect", "--all", "--stack", "dev", "--yes").stdout == "Nothing was protected.\n"
    assert lakewright("state", "rm", new, "--stack", "dev", "--yes").stdout == f"Removed {new}\n"
    assert lakewright("state", "ls", "--stack", "dev").stdout == ""


def test_history_lists_updates_newest_first(lakewright: Callable[..., Done]) -> None:
    lakewright("stack", "init", "dev")
    assert lakewright("stack", "history", "--stack", "dev").stdout == "Stack 'dev' has never been updated.\n"
    lakewright("config", "set", "token", "never-shown", "--secret", "--stack", "dev")
    for verb in ("up", "destroy"):
        lakewright(verb, "--stack", "dev", "--yes", "--engine", "embedded")
    lines = lakewright("stack", "history", "--stack", "dev").stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["destroy", "succeeded"], ["update", "succeeded"]]
    text = lakewright("stack", "history", "--stack", "dev", "--json", "--page-size", "1", "--page", "2").stdout
    (entry,) = json.loads(text)["updates"]
    assert (entry["kind"], entry["result"], entry["resource_changes"]) == ("update", "succeeded", {"create": 1})
    assert {"secret": True} in entry["config"].values()
    assert "never-shown" not in text


def test_init_without_a_backend_keeps_state_here(
    folder: Path, lakewright: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PULUMI_BACKEND_URL", "PULUMI_ACCESS_TOKEN", "PULUMI_CREDENTIALS_PATH"):
        monkeypatch.delenv(name, raising=False)
    first = lakewright("stack", "init", "dev")
    assert (first.returncode, first.stdout) == (0, "Created stack 'dev'\n")
    assert str(folder / ".lakewright" / "state") in first.stderr
    assert lakewright("stack", "init", "other").stderr == ""
    assert list((folder / ".lakewright" / "state" / ".pulumi" / "stacks").glob("*/dev.json"))


def test_init_without_a_passphrase_says_how_to_set_one(
    lakewright: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")
    failed = lakewright("stack", "init", "dev")
    assert failed.returncode == 1
    assert "export PULUMI_CONFIG_PASSPHRASE_FILE=" in failed.stderr


def test_purge_is_permitted_for_one_stack_only(lakewright: Callable[..., Done]) -> None:
    """Each tenant can have an archive of the name, and a permission skips checks of its purge."""
    for stack in ("acme", "globex"):
        lakewright("stack", "init", stack)

    refused = lakewright("expire", "--all", "--purge", "executions")
    permitted = lakewright("expire", "--stack", "acme", "--purge", "executions")

    assert (refused.returncode, refused.stdout) == (2, "")
    assert "expected exactly one deployed stack with --purge, found 2" in refused.stderr
    assert (permitted.returncode, permitted.stdout) == (0, "Nothing has ended.\n")


def test_up_and_stack_ls_count_the_same_resources(lakewright: Callable[..., Done]) -> None:
    lakewright("stack", "init", "dev")
    done = json.loads(lakewright("up", "dev", "--yes", "--json", "--engine", "embedded").stdout)
    listing = lakewright("stack", "ls").stdout.splitlines()
    counted = json.loads(lakewright("fleet", "list", "dev", "--json").stdout)["stacks"][0]["resources"]
    assert int(listing[1].split()[-1]) == counted == sum(done["changes"].values())
