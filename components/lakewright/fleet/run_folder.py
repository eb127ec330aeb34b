"""The folder of one run: its journal, and the output of each stack. An interrupted run is resumed from it.

`.lakewright/fleet/COMMAND/TIME/run.json` is the journal. It is replaced as a whole at each change, so that a killed run
leaves a complete journal. STACK.json has the output of the stack's command, STACK.log its messages.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from lakewright.fleet.selection import FleetError, ResumeError
from lakewright.validation.documents import as_mapping

FOLDER = Path(".lakewright", "fleet")
KEPT_RUNS = 5
"""Number of runs of a command whose folders are kept."""

_JOURNAL = "run.json"
_LOCK = "run.lock"


@dataclass(frozen=True)
class JournalEntry:
    """Progress of a stack. `status` is empty until its process ended."""

    status: str = ""
    exit: int | None = None
    seconds: float = 0.0
    error: str = ""
    inputs: str = ""
    """Fingerprint of the spec with its inherited values, the environment and the program before the operation."""
    state: str = ""
    """Fingerprint of the state after the operation."""
    pid: int = 0
    """The process that runs the operation; 0 if none was started."""
    process: dict[str, str] = field(default_factory=dict[str, str])
    """Identity of that process: process ids are used again."""


class RunFolder:
    """The folder of a run. One process at a time uses it."""

    def __init__(self, folder: Path, command: str, arguments: Sequence[str]) -> None:
        """Lock the folder for this process.

        Raises:
            ResumeError: Another process uses it.
        """
        self.path = folder
        self.command = command
        self.arguments = list(arguments)
        self.entries: dict[str, JournalEntry] = {}
        self._lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise ResumeError(
                f"the run in {folder} still runs in another process; wait for it, or interrupt it with Ctrl-C"
            ) from None

    @classmethod
    def create(cls, root: Path, command: str, arguments: Sequence[str], stacks: Sequence[str]) -> Self:
        """Create the folder of a new run, and remove the folders of old runs."""
        parent = root / FOLDER / command
        folder = parent / f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%S.%fZ}"
        try:
            folder.mkdir(mode=0o700, parents=True)
            for old in sorted(_list_runs(parent))[:-KEPT_RUNS]:
                shutil.rmtree(old, ignore_errors=True)
            run = cls(folder, command, arguments)
        except OSError as error:
            raise FleetError(f"{folder} cannot be written, where the output of each stack is kept: {error}") from error
        run.entries = dict.fromkeys(stacks, JournalEntry())
        run.save()
        return run

    @classmethod
    def resume(cls, root: Path, command: str, arguments: Sequence[str]) -> Self:
        """Open the folder of the newest run.

        Raises:
            ResumeError: No run exists, it still runs, or it had other options.
        """
        parent = root / FOLDER / command
        folders = sorted(_list_runs(parent))
        if not folders:
            raise ResumeError(f"--resume: {parent} has no run of `lakewright fleet {command}`; run it without --resume")
        journal = _read_journal(folders[-1] / _JOURNAL)
        earlier_arguments = [str(word) for word in journal["words"]]
        if earlier_arguments != list(arguments):
            raise ResumeError(
                f"--resume: the run in {folders[-1]} had other options: expected"
                f" `{' '.join(earlier_arguments) or 'none'}`, found `{' '.join(arguments) or 'none'}`. Pass the same"
                " options, or start a new run without --resume"
            )
        run = cls(folders[-1], command, arguments)
        field_names = JournalEntry.__dataclass_fields__
        for name, entry in as_mapping(journal["stacks"]).items():
            values = {key: value for key, value in as_mapping(entry).items() if key in field_names}
            run.entries[name] = JournalEntry(**values)
        return run

    def set(self, stack: str, entry: JournalEntry) -> None:
        """Note the progress of a stack."""
        self.entries[stack] = entry
        self.save()

    def save(self) -> None:
        """Replace the journal."""
        content = {
            "version": 1,
            "command": self.command,
            "words": self.arguments,
            "stacks": {name: asdict(entry) for name, entry in self.entries.items()},
        }
        new = self.path / f"{_JOURNAL}.new"
        new.write_text(json.dumps(content), encoding="utf-8")
        new.replace(self.path / _JOURNAL)

    def output(self, stack: str) -> Path:
        """Return the file with the JSON that a stack's command printed."""
        return self.path / f"{stack}.json"

    def log(self, stack: str) -> Path:
        """Return the file with a stack's messages."""
        return self.path / f"{stack}.log"

    def document(self, stack: str) -> Mapping[str, Any]:
        """Return the JSON that a stack's command printed; empty if it is not whole."""
        try:
            return as_mapping(json.loads(self.output(stack).read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return {}

    def close(self) -> None:
        """Release the folder."""
        os.close(self._lock)


def _list_runs(parent: Path) -> list[Path]:
    with suppress(OSError):
        return [folder for folder in parent.iterdir() if (folder / _JOURNAL).is_file() or not any(folder.iterdir())]
    return []


def _read_journal(file: Path) -> Mapping[str, Any]:
    try:
        journal = as_mapping(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ResumeError(f"--resume: {file} cannot be read: {error}; start a new run without --resume") from error
    if journal.get("version") != 1 or not isinstance(journal.get("words"), list) or "stacks" not in journal:
        raise ResumeError(f"--resume: {file} is not a journal of this version; start a new run without --resume")
    return journal
