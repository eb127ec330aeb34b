"""The process of the Pulumi CLI, which gets signals from this process only.

Import it only to run the CLI: importing the Automation API is slow.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from pulumi.automation import CommandResult, PulumiCommand
from pulumi.automation.errors import create_command_error

from lakewright.cli.engines.signals import forward_signals

Listen = Callable[[str], Any]


class PulumiInOwnSession(PulumiCommand):
    """Runs the CLI in a session of its own.

    In this process's session, the CLI would get signals twice: from the process group and from this process. A closing
    terminal would kill it.
    """

    is_interrupted = False
    """Whether a signal was passed on to a command."""

    def run(
        self,
        args: list[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: Listen | None = None,
        on_error: Listen | None = None,
    ) -> CommandResult:
        """Run a command as `PulumiCommand.run` does. Raises CommandError if it fails, without the command's output.

        The output may be a state or outputs, with secrets.
        """
        options = [] if "--non-interactive" in args else ["--non-interactive"]
        env = {**os.environ, **additional_env, "PULUMI_AUTOMATION_API": "true"}
        if Path(self.command).is_absolute():
            env["PATH"] = os.pathsep.join([str(Path(self.command).parent), env.get("PATH", "")])
        lines: tuple[list[str], list[str]] = ([], [])
        with (
            forward_signals() as passed,
            subprocess.Popen(
                [self.command, *options, *args],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env=env,
                encoding="utf-8",
                start_new_session=True,
            ) as process,
        ):
            passed.forward_to_process(process)
            assert process.stdout is not None
            assert process.stderr is not None
            readers = [
                threading.Thread(target=_read, args=arguments)
                for arguments in (
                    (process.stdout, on_output, lines[0]),
                    (process.stderr, on_error, lines[1]),
                )
            ]
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
            code = process.wait()
        self.is_interrupted = self.is_interrupted or passed.has_arrived
        result = CommandResult(stdout="\n".join(lines[0]), stderr="\n".join(lines[1]), code=code)
        if code != 0:
            raise create_command_error(CommandResult(stdout="", stderr=result.stderr, code=code))
        return result


def _read(stream: IO[str], listen: Listen | None, lines: list[str]) -> None:
    for line in stream:
        lines.append(line.rstrip())
        if listen:
            listen(lines[-1])
