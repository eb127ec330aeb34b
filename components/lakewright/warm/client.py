"""Run a command in the project's warm process, as if it ran here: same output, exit code and signals."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys

from lakewright.warm.address import Address, find_address, select_environment
from lakewright.warm.messages import read_peer_user, receive, receive_all, send

ENTRY = "lakewright.cli.app:run"
"""The function that the warm process calls for a command."""

_RESPONSE_SECONDS = 3.0
_FORWARDED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STANDARD = (0, 1, 2)
_DESCRIPTOR_FILES = ("/dev/fd/", "/proc/self/fd/")


class WarmClient:
    """A command that may run in a warm process."""

    def __init__(self, arguments: list[str], address: Address) -> None:
        """Take the words of a command and the address of its warm process."""
        self._arguments = arguments
        self._address = address
        self._process = -1
        """A descriptor of the process that runs the command."""

    @classmethod
    def create_for_command(cls, arguments: list[str]) -> WarmClient | None:
        """Return the client of a command; None for a command that always runs by itself."""
        if _names_descriptor(arguments):
            return None
        try:
            address = find_address(arguments)
        except OSError:  # no /proc, a namespace that this kernel lacks, or a deleted working directory
            return None
        if address is None or signal.pthread_sigmask(signal.SIG_BLOCK, []):
            return None
        return cls(arguments, address)

    def run(self) -> int | None:
        """Run the command in the warm process and return its exit code; None where it must run here."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_RESPONSE_SECONDS)
            try:
                connection.connect(self._address.socket)
                if read_peer_user(connection) != os.geteuid():
                    return None
                ready, _ = receive(connection)
            except FileNotFoundError:
                return None
            except OSError as error:
                return _report_absence(str(error))
            if ready is None:
                return _report_absence("it ended")
            if "pid" not in ready:  # it ends because its code is out of date
                return None
            connection.settimeout(None)
            return self._hand_over(connection, ready["pid"])

    def start_process(self) -> int:
        """Start a warm process for the next command, unless it is running. Return its id; 0 if none was started."""
        import subprocess  # noqa: PLC0415 - slow to load, and loaded where a command has run here
        from typing import Any, cast  # noqa: PLC0415

        if not os.path.isdir(self._address.root):  # noqa: PTH112
            return 0
        flags: list[str] = cast(Any, subprocess)._args_from_interpreter_flags()
        process_name = "lakewright.warm.process"
        command = [sys.executable, *flags, "-P", "-m", process_name, self._address.base, self._address.root, ENTRY]
        descriptor = os.open(self._address.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "wb") as log:
            process = subprocess.Popen(
                command,
                cwd="/",
                env=select_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        process.returncode = 0  # it outlives this process
        return process.pid

    def _hand_over(self, connection: socket.socket, pid: int) -> int | None:
        from lakewright_engine.processes.prompt_signals import PromptSignals  # noqa: PLC0415 - `--help` needs none of it

        try:
            self._process = os.pidfd_open(pid)
            request = self._make_request()
        except OSError:
            return None
        before = {number: signal.getsignal(number) for number in (*_FORWARDED_SIGNALS, signal.SIGTSTP, signal.SIGCONT)}
        with PromptSignals():
            try:
                for number in _FORWARDED_SIGNALS:
                    if number is not signal.SIGHUP or before[number] is not signal.SIG_IGN:
                        signal.signal(number, self._pass_on)
                signal.signal(signal.SIGTSTP, self._stop)
                signal.signal(signal.SIGCONT, self._pass_on)
                try:
                    send(connection, request, _STANDARD)
                except OSError as error:  # it was not received as a whole, so nothing has begun
                    return _report_absence(str(error))
                return self._wait(connection)
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)
                os.close(self._process)

    def _make_request(self) -> dict[str, object]:
        for descriptor in _STANDARD:
            os.fstat(descriptor)  # a closed descriptor cannot be handed over
        umask = os.umask(0o077)
        os.umask(umask)
        return {
            "arguments": self._arguments,
            "name": sys.argv[0],
            "path": sys.path,
            "folder": os.getcwd(),  # noqa: PTH109
            "environment": dict(os.environ),
            "umask": umask,
            "unbuffered": bool(getattr(sys.stdout, "write_through", False)),
            "ignored": [number for number in range(1, signal.NSIG) if _is_ignored(number)],
        }

    def _wait(self, connection: socket.socket) -> int | None:
        has_started = False
        for message in receive_all(connection):
            if "declined" in message:
                return None
            has_started = True
            if "exit" in message:
                return message["exit"]
            if "signal" in message:
                _end_by_signal(message["signal"])
        if not has_started:
            return _report_absence("it ended")
        print("error: the process that ran this command was ended from outside; run the command again", file=sys.stderr)
        return 1

    def _pass_on(self, number: int, _frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._process, number)

    def _stop(self, _number: int, _frame: object) -> None:
        """Stop both, as Ctrl-Z does; SIGCONT continues both."""
        self._pass_on(signal.SIGSTOP, None)
        os.kill(os.getpid(), signal.SIGSTOP)


def _end_by_signal(number: int) -> None:
    with contextlib.suppress(OSError):  # SIGKILL has no handler
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _names_descriptor(arguments: list[str]) -> bool:
    """Return whether an argument or a variable names an open file of this process, as `<(COMMAND)` of a shell does."""
    return any(name in text for text in (*arguments, *os.environ.values()) for name in _DESCRIPTOR_FILES)


def _is_ignored(number: int) -> bool:
    try:
        return signal.getsignal(number) is signal.SIG_IGN
    except ValueError:
        return False


def _report_absence(reason: str) -> None:
    print(f"note: the warm process of this project does not respond ({reason}); continuing without it", file=sys.stderr)
