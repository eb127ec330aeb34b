"""One stack under both engines in turn: each reads the other's state, secrets, settings, locks and history."""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.command_server import run_command

pytestmark = pytest.mark.pulumi_cli

PROGRAM = """
import pulumi
from filestore import File
config = pulumi.Config()
a = File("a", "a.json", config.require("content"), token=config.require_secret("token"))
pulumi.export("content", a.content)
pulumi.export("token", config.require_secret("token"))
"""
PARTS = """
from filestore import File
a = File("a", "a.json", "a{0}")
b = File("b", "b.json", a.etag)
c = File("c", "c.json", "c{0}")
"""
FAILING = """
import asyncio
import pulumi
from pulumi.dynamic import Resource, ResourceProvider

class Full(ResourceProvider):
    def create(self, props):
        raise OSError("the disk is full")

class Disk(Resource):
    def __init__(self, name):
        super().__init__(Full(), name, {})

async def wait_for_ever():
    await asyncio.Event().wait()

Disk("full")
pulumi.export("never", pulumi.Output.from_input(wait_for_ever()))
"""
"""A resource that fails while the program still waits, so that the CLI must interrupt it."""
ENDLESS = """
import threading
from filestore import File
def wait(_):
    with open("{gate}", "w") as gate:
        gate.write("a exists")
    threading.Event().wait()
a = File("a", "a.json", "one")
File("b", "b.json", a.etag.apply(wait))
"""
SLOW = """
from pulumi.dynamic import CreateResult, Resource, ResourceProvider

class Slow(ResourceProvider):
    def create(self, props):
        with open("{gate}", "w") as gate:
            gate.write("it creates")
        with open("{release}") as release:
            release.read(1)
        return CreateResult("slow", {{}})

class Step(Resource):
    def __init__(self, name):
        super().__init__(Slow(), name, {{}})

Step("slow")
"""
"""A step that runs until it is released."""
ENGINES = ("embedded", "pulumi")
FILESTORE = Path(__file__).parents[1] / "engine"


class ProjectFolder:
    """A project with one stack `dev`, and both command lines in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = path / "store"
        self.store.mkdir()
        (path / "state").mkdir()
        (path / "Pulumi.yaml").write_text("name: conf\nruntime: python\n")
        (path / "__main__.py").write_text(PROGRAM)
        self.environment = {
            **os.environ,
            "PULUMI_BACKEND_URL": f"file://{path / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": "conformance",
            "PULUMI_HOME": str(path / "home"),
            "PULUMI_SKIP_UPDATE_CHECK": "1",
            "FILESTORE": str(self.store),
            "PYTHONPATH": str(FILESTORE),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }

    def lakewright(self, *arguments: str, code: int = 0, stdin: str = "") -> str:
        completed = run_command(self._build_arguments(arguments), self.path, self.environment, stdin=stdin)
        return self._check_output(completed, code)

    def pulumi(self, *arguments: str, code: int = 0, stdin: str = "") -> str:
        completed = subprocess.run(
            ["pulumi", "--non-interactive", *self._build_arguments(arguments)],
            cwd=self.path,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        return self._check_output(completed, code)

    def json(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        return json.loads(self.lakewright(*arguments, "--json", code=code).partition("Engine: ")[0])

    def _build_arguments(self, arguments: tuple[str, ...]) -> list[str]:
        return [*arguments] if "ls" in arguments else [*arguments, "--stack", "dev"]

    def _check_output(self, completed: subprocess.CompletedProcess[str], code: int) -> str:
        assert completed.returncode == code, completed.stdout + completed.stderr
        return completed.stdout + (completed.stderr if code else "")


@pytest.fixture
def folder(tmp_path: Path) -> ProjectFolder:
    folder = ProjectFolder(tmp_path)
    folder.lakewright("stack", "init")
    folder.lakewright("config", "set", "content", "one")
    folder.lakewright("config", "set", "--secret", "token", "hush")
    return folder


def wrap_export(folder: ProjectFolder, ending: str) -> None:
    """Have a shell command follow each export of the state that the Pulumi CLI does."""
    wrapper = folder.path / "bin" / "pulumi"
    wrapper.parent.mkdir()
    program = shutil.which("pulumi")
    wrapper.write_text(
        f'#!/bin/sh\ncase "$*" in *"stack export"*) {program} "$@"; {ending};; *) exec {program} "$@";; esac\n'
    )
    wrapper.chmod(0o755)
    folder.environment["PATH"] = f"{wrapper.parent}{os.pathsep}{folder.environment['PATH']}"


def test_killed_export_prints_no_state(folder: ProjectFolder) -> None:
    wrap_export(folder, "kill -TERM $$")

    printed = folder.lakewright("preview", "--engine", "pulumi", code=1)

    assert "error: the Pulumi CLI was ended by SIGTERM" in printed
    assert "deployment" not in printed
    assert "stdout" not in printed


def test_interrupt_before_the_operation_changes_nothing(folder: ProjectFolder) -> None:
    folder.lakewright("up", "--yes", "--engine", "pulumi")
    wrap_export(folder, "trap '' INT; kill -INT $PPID; sleep 0.5")

    printed = folder.lakewright("destroy", "--yes", "--engine", "pulumi", code=1)

    assert "interrupted before the operation began; nothing was changed" in printed
    assert (folder.store / "a.json").exists()


REFUSING = """
import pulumi
from pulumi.dynamic import CheckFailure, CheckResult, Resource, ResourceProvider

class Refusing(ResourceProvider):
    def check(self, olds, news):
        return CheckResult(news, [CheckFailure(name, "is refused") for name in ("plain", "flat", "nested", "many")])

secret = pulumi.Output.secret("CANARY")
inputs = {"plain": "visible", "flat": secret, "nested": {"a": {"b": secret}}, "many": [secret]}
class Refused(Resource):
    def __init__(self, name):
        super().__init__(Refusing(), name, inputs)

Refused("refused")
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_refused_secret_is_hidden(folder: ProjectFolder, engine: str) -> None:
    (folder.path / "__main__.py").write_text(REFUSING)

    for options in ((), ("--json",)):
        printed = folder.lakewright("preview", "--engine", engine, *options, code=1)

        assert "CANARY" not in printed
        assert printed.count("is refused") >= 4


@pytest.mark.parametrize(("first", "second"), [ENGINES, ENGINES[::-1]])
def test_engines_continue_each_others_state(folder: ProjectFolder, first: str, second: str) -> None:
    created = folder.json("up", "--yes", "--engine", first)
    assert (created["changes"], created["outputs"]) == ({"create": 2}, {"content": "one", "token": "[secret]"})
    unchanged = folder.json("preview", "--refresh", "--expect-no-changes", "--engine", second)
    assert unchanged["changes"] == {"same": 2}
    folder.lakewright("config", "set", "content", "two")
    updated = folder.json("up", "--yes", "--engine", second)
    assert updated["changes"] == {"same": 1, "update": 1}
    assert folder.json("preview", "--expect-no-changes", "--engine", first)["exit"] == 0
    assert folder.json("destroy", "--yes", "--engine", first)["changes"] == {"delete": 2}
    assert list(folder.store.glob("*.json")) == []


def test_both_engines_report_equal_results(folder: ProjectFolder) -> None:
    folder.lakewright("up", "--yes", "--engine", "embedded")
    (folder.store / "a.json").write_text(json.dumps({"path": "a.json", "content": "drifted"}))
    for command, code in (
        (["preview"], 0),
        (["preview", "--refresh", "--expect-no-changes"], 7),
        (["refresh", "--preview-only", "--expect-no-changes"], 7),
        (["destroy", "--preview-only"], 0),
    ):
        embedded, pulumi = (folder.json(*command, "--engine", engine, code=code) for engine in ENGINES)
        for result in (embedded, pulumi):
            result["steps"].sort(key=lambda step: (step["op"], step["urn"]))
            result.pop("messages")
        assert embedded == pulumi


@pytest.mark.parametrize("shows", ["false", "true"])
@pytest.mark.parametrize("engine", ENGINES)
def test_secret_within_an_output_is_hidden(folder: ProjectFolder, engine: str, shows: str) -> None:
    folder.environment["PULUMI_OPTION_SHOW_SECRETS"] = shows
    program = 'import pulumi\npulumi.export("access", {"user": "ops", "token": pulumi.Output.secret("CANARY")})\n'
    (folder.path / "__main__.py").write_text(program)

    for command in (("up", "--yes"), ("preview",), ("refresh", "--yes")):
        printed = folder.lakewright(*command, "--json", "--engine", engine)

        assert "CANARY" not in printed
        outputs = json.loads(printed.partition("Engine: ")[0])["outputs"]
        assert outputs == {"access": {"user": "ops", "token": "[secret]"}}


def test_both_engines_update_targets(folder: ProjectFolder) -> None:
    (folder.path / "__main__.py").write_text(PARTS.format(1))
    folder.lakewright("up", "--yes", "--engine", "embedded")
    (folder.path / "__main__.py").write_text(PARTS.format(2))
    for command in (
        "preview --target **::a",
        "preview --target **::a --target-dependents",
        "preview --exclude **::a --exclude-dependents",
        "preview --replace **::c",
        "refresh --preview-only --target **::a --target-dependents",
        "refresh --preview-only --exclude **::a --exclude-dependents",
        "destroy --preview-only --target **::a --target-dependents",
        "destroy --preview-only --exclude **::a",
    ):
        embedded, pulumi = (folder.json(*command.split(), "--engine", engine) for engine in ENGINES)
        for result in (embedded, pulumi):
            result["steps"].sort(key=lambda step: (step["op"], step["urn"]))
            result.pop("messages")
        assert embedded == pulumi, command
    folder.lakewright("destroy", "--yes", "--exclude", "**::a", "--engine", "pulumi")
    assert [path.name for path in folder.store.glob("*.json")] == ["a.json"]


def test_failed_program_exits_with_one(folder: ProjectFolder) -> None:
    (folder.path / "__main__.py").write_text("raise ValueError('no such luck')\n")
    for engine in ENGINES:
        result = folder.json("up", "--yes", "--engine", engine, code=1)
        assert result["exit"] == 1
        assert "no such luck" in "\n".join(result["messages"])


def test_failed_run_has_no_launcher_traceback(folder: ProjectFolder) -> None:
    (folder.path / "__main__.py").write_text(f"{FAILING}{PROGRAM}")

    output = folder.lakewright("up", "--yes", "--engine", "pulumi", code=1)

    assert "the disk is full" in output
    assert "pulumi-language-python-exec" not in output
    assert "KeyboardInterrupt" not in output


def test_export_and_import_both_ways(folder: ProjectFolder) -> None:
    folder.lakewright("up", "--yes", "--engine", "embedded")
    ours = folder.lakewright("stack", "export")
    assert json.loads(folder.pulumi("stack", "export")) == json.loads(ours)
    folder.pulumi("stack", "import", stdin=ours)
    theirs = folder.pulumi("stack", "export")
    folder.lakewright("stack", "import", stdin=theirs)
    assert folder.json("preview", "--expect-no-changes", "--engine", "embedded")["changes"] == {"same": 2}
    assert folder.json("preview", "--expect-no-changes", "--engine", "pulumi")["changes"] == {"same": 2}


def test_both_engines_read_settings_and_secrets(folder: ProjectFolder) -> None:
    folder.pulumi("config", "set", "--path", "tree.leaf[0]", "7")
    folder.pulumi("config", "set", "--path", "--secret", "tree.token", "hush hush")
    folder.lakewright("config", "set", "--path", "tree.leaf[1]", "true")
    expected = '{"leaf":[7,true],"token":"hush hush"}\n'
    assert folder.lakewright("config", "get", "tree") == folder.pulumi("config", "get", "tree") == expected
    ours, theirs = (tool("config", "get", "tree", "--json") for tool in (folder.lakewright, folder.pulumi))
    assert json.loads(ours) == {key.replace("V", "_v"): value for key, value in json.loads(theirs).items()}
    folder.pulumi("config", "rm", "--path", "tree.leaf[0]")
    assert folder.lakewright("config", "get", "--path", "tree.leaf") == "[true]\n"


def test_outputs_and_stacks_are_listed_alike(folder: ProjectFolder) -> None:
    folder.lakewright("up", "--yes", "--engine", "embedded")
    for arguments in (
        ["stack", "output", "--json"],
        ["stack", "output", "--json", "--show-secrets"],
        ["stack", "output", "token"],
        ["stack", "output", "content"],
    ):
        assert folder.lakewright(*arguments) == folder.pulumi(*arguments)
    ours, theirs = (json.loads(tool("stack", "ls", "--json")) for tool in (folder.lakewright, folder.pulumi))
    assert [(item["name"], item["resource_count"]) for item in ours["stacks"]] == [
        (item["name"], item["resourceCount"]) for item in theirs
    ]


def test_cli_reads_history_of_the_embedded_engine(folder: ProjectFolder) -> None:
    folder.lakewright("up", "--yes", "--engine", "embedded")
    [update] = json.loads(folder.pulumi("stack", "history", "--json"))
    assert (update["kind"], update["result"], update["resourceChanges"]) == ("update", "succeeded", {"create": 2})
    assert update["config"]["conf:token"] == {"secret": True}


def test_engines_respect_each_others_locks(folder: ProjectFolder) -> None:
    locks = folder.path / "state" / ".pulumi" / "locks" / "organization" / "conf" / "dev"
    script = """
import sys
from lakewright_engine.state.backend import StateBackend
from lakewright_engine.state.backends import open_backend
with open_backend(sys.argv[1]).lock("conf", "dev"):
    print("held", flush=True)
    sys.stdin.read()
"""
    holder = subprocess.Popen(
        [sys.executable, "-c", script, folder.environment["PULUMI_BACKEND_URL"]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    assert f"pid {holder.pid}" in folder.pulumi("up", "--yes", "--skip-preview", code=1)
    [ours] = locks.glob("*.json")
    lock_text = ours.read_text()
    holder.communicate("")
    assert not list(locks.glob("*.json"))
    ours.write_text(lock_text)
    assert f"pid {holder.pid}" in folder.pulumi("up", "--yes", "--skip-preview", code=1)
    # `lakewright` removes the lock of a dead process before it calls the CLI.
    folder.lakewright("up", "--yes", "--engine", "pulumi")
    ours.write_text(lock_text)
    folder.lakewright("stack", "cancel")
    folder.pulumi("up", "--yes", "--skip-preview")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_interrupt_lets_running_steps_finish(folder: ProjectFolder, engine: str, number: signal.Signals) -> None:
    gate = folder.path / "gate"
    os.mkfifo(gate)
    (folder.path / "__main__.py").write_text(ENDLESS.format(gate=str(gate)))
    command = [sys.executable, "-c", "from lakewright.cli import main; main()"]
    running = subprocess.Popen(
        [*command, "up", "--yes", "--stack", "dev", "--engine", engine],
        cwd=folder.path,
        env=folder.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert gate.read_text() == "a exists"

    running.send_signal(number)
    output, _ = running.communicate()

    assert running.returncode not in (0, -number), output
    assert not list((folder.path / "state" / ".pulumi" / "locks").rglob("*.json"))
    deployment = json.loads(folder.lakewright("stack", "export"))["deployment"]
    assert "a.json" in [resource.get("id") for resource in deployment["resources"]]
    assert not deployment.get("pending_operations")


def wait_for_end(terminal: int, process: int) -> int:
    """Read a terminal until its process ends; return the exit status of the process."""
    with suppress(OSError):  # The read fails at the end of a terminal.
        while os.read(terminal, 4096):
            pass
    return os.waitpid(process, 0)[1]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, "timeout", "closed terminal"])
def test_signal_to_the_group_reaches_the_cli_once(folder: ProjectFolder, sent: signal.Signals | str) -> None:
    """A second signal, or any SIGHUP, makes the CLI exit at once and leave its lock and pending operations."""
    gate, release = folder.path / "gate", folder.path / "release"
    os.mkfifo(gate)
    os.mkfifo(release)
    (folder.path / "__main__.py").write_text(SLOW.format(gate=str(gate), release=str(release)))
    command = [sys.executable, "-c", "from lakewright.cli import main; main()"]
    process, terminal = pty.fork()
    if process == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.chdir(folder.path)
        options = ["up", "--yes", "--stack", "dev", "--engine", "pulumi"]
        os.execve(sys.executable, [*command, *options], folder.environment)
    assert gate.read_text() == "it creates"
    released = os.open(release, os.O_RDWR)

    if sent == "closed terminal":
        os.close(terminal)
        os.write(released, b"x")
        os.waitpid(process, 0)
    elif sent == "timeout":
        os.kill(process, signal.SIGTERM)
        os.killpg(process, signal.SIGTERM)
        os.write(released, b"x")
        wait_for_end(terminal, process)
    else:
        assert isinstance(sent, signal.Signals)
        os.killpg(process, sent)
        os.write(released, b"x")
        assert not os.WIFSIGNALED(wait_for_end(terminal, process))

    assert not list((folder.path / "state" / ".pulumi" / "locks").rglob("*.json"))
    deployment = json.loads(folder.lakewright("stack", "export"))["deployment"]
    assert "slow" in [resource.get("id") for resource in deployment["resources"]]
    assert not deployment.get("pending_operations")


def test_embedded_engine_removes_a_stack_of_the_cli(folder: ProjectFolder) -> None:
    shutil.rmtree(folder.path / "state" / ".pulumi")
    (folder.path / "Pulumi.dev.yaml").unlink()
    subprocess.run(["pulumi", "stack", "init", "dev"], cwd=folder.path, env=folder.environment, check=True)
    folder.lakewright("stack", "rm", "--yes")
    assert folder.pulumi("stack", "ls", "--json").strip() == "[]"
