"""A command in the warm process has the same effects as a cold command and leaves nothing behind."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import socket
import stat
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import os
import pulumi
from filestore import File
a = File("a", "a.json", "one")
pulumi.export("etag", a.etag)
pulumi.export("caller", os.environ.get("CALLER", "none"))
print("in", os.getcwd())
"""
SECRET = "correct-horse-battery"


def uses(commands: Any) -> int:
    """Return when the warm process was used last: each command that it serves changes that."""
    assert "declined" not in commands.log()
    return Path(commands.address.socket).stat().st_mtime_ns


@pytest.mark.long
@pytest.mark.timeout(90)
def test_warm_noop_equals_the_cold_one(commands: Any) -> None:
    commands.stack.write_program(PROGRAM)
    commands.run("up", "--yes", LAKEWRIGHT_WARM="0")
    cold = commands.run("up", "--yes", LAKEWRIGHT_WARM="0")
    before = commands.stack.deployment()
    commands.warm_up()
    began = uses(commands)

    warm = commands.run("up", "--yes")

    assert uses(commands) > began
    assert warm == cold
    assert remove_times(commands.stack.deployment()) == remove_times(before)
    assert commands.run("preview", "--json") == commands.run("preview", "--json", LAKEWRIGHT_WARM="0")
    assert commands.run("up", code=2) == commands.run("up", code=2, LAKEWRIGHT_WARM="0")
    used = uses(commands)
    commands.run("preview", "--no-warm")
    assert uses(commands) == used
    history = list((commands.stack.backend.storage.root / "history").rglob("*.history.json"))
    assert len(history) == 3


@pytest.mark.timeout(90)
@pytest.mark.long
def test_commands_without_a_program_equal_the_cold_ones(commands: Any) -> None:
    commands.stack.write_program(PROGRAM)
    commands.run("up", "--yes", LAKEWRIGHT_WARM="0")
    commands.run("config", "set", "color", "red", LAKEWRIGHT_WARM="0")
    commands.warm_up()
    lines = (
        (("drift",), 0),
        (("config", "get", "color"), 0),
        (("check",), 0),
        (("verify",), 1),
    )

    for arguments, code in lines:
        began = uses(commands)
        warm = commands.run(*arguments, code=code)
        assert uses(commands) > began, arguments
        cold = commands.run(*arguments, code=code, LAKEWRIGHT_WARM="0")
        assert [re.sub(r"\d+\.\d s", "", text) for text in warm] == [re.sub(r"\d+\.\d s", "", text) for text in cold]
    used = uses(commands)
    commands.run("config", "get", "color", "--no-warm")
    assert uses(commands) == used


@pytest.mark.timeout(90)
def test_inherited_descriptor_can_be_read(commands: Any) -> None:
    """`PULUMI_CONFIG_PASSPHRASE_FILE=<(print-passphrase)` is such a descriptor in bash."""
    commands.stack.set_config("color", "red", secret=True)
    commands.warm_up()
    script = 'PULUMI_CONFIG_PASSPHRASE_FILE=<(printf "$PASSPHRASE") exec "$@"'
    environment = commands.environment | {"PASSPHRASE": commands.environment["PULUMI_CONFIG_PASSPHRASE"]}
    del environment["PULUMI_CONFIG_PASSPHRASE"]

    done = subprocess.run(
        ["bash", "-c", script, "bash", *commands.words("config", "get", "color")],
        cwd=commands.stack.program_dir,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout, done.returncode) == ("red\n", 0), done.stderr


def remove_times(deployment: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in deployment.items() if key not in ("manifest", "secrets_providers")}


@pytest.mark.long
@pytest.mark.timeout(90)
def test_each_command_runs_the_program_as_it_is(commands: Any) -> None:
    """A changed program, a module beside it, and one that hides an imported package are seen."""
    commands.warm_up()
    commands.stack.write_program("import pulumi\nimport beside\npulumi.export('value', beside.VALUE)\n")
    beside = commands.stack.program_dir / "beside.py"
    for value in ("first", "second"):
        beside.write_text(f"VALUE = '{value}'\n")
        assert value in commands.run("up", "--yes")[0]
    began = uses(commands)
    commands.stack.write_program("import pulumi\nimport httpx\npulumi.export('value', httpx.VALUE)\n")
    (commands.stack.program_dir / "httpx.py").write_text("VALUE = 'third'\n")

    assert "third" in commands.run("up", "--yes")[0]
    assert uses(commands) > began


@pytest.mark.long
@pytest.mark.timeout(90)
def test_nothing_of_a_caller_stays(commands: Any) -> None:
    """The process that waits has no secret of a caller in its memory, environment, arguments or files."""
    commands.stack.write_program(PROGRAM)
    commands.run("preview", CALLER=SECRET)
    process = commands.wait_until_ready()

    assert SECRET in commands.run("up", "--yes", CALLER=SECRET, TOKEN=SECRET)[0]
    assert "none" in commands.run("up", "--yes")[0]

    assert commands.process() == process
    uses(commands)
    proc = Path(f"/proc/{process}")
    assert SECRET.encode() not in (proc / "environ").read_bytes()
    assert commands.environment["PULUMI_CONFIG_PASSPHRASE"].encode() not in (proc / "environ").read_bytes()
    assert SECRET.encode() not in (proc / "cmdline").read_bytes()
    assert not is_in_memory(process, SECRET.encode())
    assert is_in_memory(process, b"lakewright.warm.process"), "the memory was read"
    for file in commands.runtime.rglob("*.*"):
        if file.is_file():
            assert SECRET.encode() not in file.read_bytes()


def is_in_memory(process: int, text: bytes) -> bool:
    maps = Path(f"/proc/{process}/maps").read_text().splitlines()
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
        for line in maps:
            bounds, rights = line.split()[:2]
            if not rights.startswith("rw"):
                continue
            begin, end = (int(bound, 16) for bound in bounds.split("-"))
            memory.seek(begin)
            with suppress(OSError):
                if text in memory.read(end - begin):
                    return True
    return False


@pytest.mark.timeout(90)
def test_each_caller_has_its_own_folder_and_umask(commands: Any) -> None:
    commands.warm_up()
    commands.stack.write_program("import os\nprint(os.environ['CALLER'], oct(os.umask(0)))\n")

    before = os.umask(0o027)
    try:
        output, _ = commands.run("preview", CALLER="one")
    finally:
        os.umask(before)

    assert "one 0o27" in output


@pytest.mark.timeout(90)
@pytest.mark.long
def test_prompt_on_a_terminal_is_the_same(commands: Any) -> None:
    commands.stack.write_program(PROGRAM)
    cold = answer_on_terminal(commands, {"LAKEWRIGHT_WARM": "0"})
    commands.warm_up()
    began = uses(commands)

    warm = answer_on_terminal(commands, {})

    assert uses(commands) > began
    assert warm == cold
    assert "\x1b[" in warm[1], "a terminal is shown colors"


def answer_on_terminal(commands: Any, variables: dict[str, str]) -> tuple[int, str]:
    """Answer `no` to the prompt of `up`; return the exit status and all that the terminal shows."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(commands.stack.program_dir)
        command = commands.words("up")
        os.execve(command[0], command, {**commands.environment, **variables, "TERM": "xterm"})
    terminal_output = b""
    while b"[yes/no/details]: " not in terminal_output:
        terminal_output += os.read(terminal, 4096)
    os.write(terminal, b"no\n")
    with suppress(OSError):  # the end of a terminal
        while part := os.read(terminal, 4096):
            terminal_output += part
    os.close(terminal)
    text = re.sub(r"Duration: .*?\d+s", "", terminal_output.decode())
    # How often the line of progress is drawn depends on the time.
    lines = {line.replace("\x1b[2K", "").replace("\x1b[1A", "") for line in re.split(r"[\r\n]+", text)}
    output = sorted(line for line in lines if line.strip() and "Previewing update" not in line)
    return os.waitpid(process, 0)[1], "\n".join(output)


@pytest.mark.timeout(90)
@pytest.mark.long
def test_caller_with_other_import_time_variables_runs_by_itself(commands: Any) -> None:
    """Some packages read variables when they are imported: here the variables of the first caller."""
    commands.warm_up()

    output, errors = commands.run("preview", OTEL_PYTHON_CONTEXT="contextvars_context")

    assert (output, errors) == commands.run("preview", LAKEWRIGHT_WARM="0")
    assert "declined a command: OTEL_PYTHON_CONTEXT differ" in commands.log()


@pytest.mark.timeout(90)
def test_it_ends_when_idle(commands: Any, ended: Any) -> None:
    commands.environment["LAKEWRIGHT_WARM_IDLE"] = "0.1"
    commands.run("preview")
    commands.wait_until(lambda: bool(list(commands.runtime.glob("lakewright/*.lock"))))

    commands.wait_until(lambda: "no command came" in commands.log())

    assert commands.process() is None


@pytest.mark.timeout(90)
@pytest.mark.parametrize("removed", ["socket", "project"])
def test_it_ends_with_its_socket_and_its_project(commands: Any, ended: Any, removed: str) -> None:
    process = commands.warm_up()

    if removed == "socket":
        Path(commands.address.socket).unlink()
    else:
        commands.stack.program_dir.rename(commands.stack.folder / "elsewhere")

    assert ended(process)


@pytest.mark.long
@pytest.mark.timeout(90)
def test_changed_packages_are_imported_anew(commands: Any, ended: Any, tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    os.utime(packages, (1, 1))
    commands.environment["PYTHONPATH"] += f"{os.pathsep}{packages}"
    process = commands.warm_up()

    (packages / "new.py").touch()
    _, errors = commands.run("preview")

    assert ended(process)
    assert errors == commands.run("preview", LAKEWRIGHT_WARM="0")[1]
    assert commands.wait_until_ready() != process


@pytest.mark.long
@pytest.mark.timeout(90)
def test_command_runs_by_itself_where_nobody_answers(commands: Any, ended: Any) -> None:
    process = commands.warm_up()
    os.kill(process, signal.SIGSTOP)
    try:
        _, errors = commands.run("preview")
    finally:
        os.kill(process, signal.SIGKILL)
    assert ended(process)
    note = "note: the warm process of this project does not respond (timed out); continuing without it\n"
    assert errors == note + commands.run("preview", LAKEWRIGHT_WARM="0")[1]

    commands.wait_until(lambda: commands.process() is None)
    _, errors = commands.run("preview")
    assert errors.startswith("note: the warm process of this project does not respond ([Errno 111] Connection refused)")
    assert commands.wait_until_ready() != process


@pytest.mark.timeout(90)
@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become another user")
def test_other_users_are_not_served(commands: Any) -> None:
    commands.warm_up()
    file = Path(commands.address.socket)
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert call_as_other_user(file) == "PermissionError"

    commands.runtime.chmod(0o755)
    file.parent.chmod(0o755)
    file.chmod(0o777)

    assert call_as_other_user(file) == "closed"
    file.parent.chmod(0o700)


def call_as_other_user(file: Path) -> str:
    """Return the response that another user of the machine gets from a socket."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.setgid(65534)
            os.setuid(65534)
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(10)
                connection.connect(str(file))
                answer = connection.recv(1024)
            os.write(writer, answer or b"closed")
        except OSError as error:
            os.write(writer, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    os.close(writer)
    assert select.select([reader], [], [], 10)[0]
    with os.fdopen(reader) as stream:
        return stream.read()
