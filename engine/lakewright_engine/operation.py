"""What the engine can be asked to do with a stack, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lakewright_engine.project.project import PulumiProject

UNEXPECTED_CHANGES = 7
"""Exit code where no changes were expected, and some were found; the CLI's."""


@dataclass(frozen=True)
class Operation:
    """What to do with a stack. `verb` is `preview`, `up`, `refresh` or `destroy`."""

    verb: str
    project: PulumiProject
    stack: str
    refresh: bool = False
    """Read every object before the program is run."""
    expect_no_changes: bool = False
    preview_only: bool = False
    """For `refresh` and `destroy`: say what would happen, change nothing."""
    parallel: int = 16
    targets: tuple[str, ...] = ()
    """URNs or globs of the resources to work on; where there are none, it is all of them."""
    target_dependents: bool = False
    """Also work on what depends on the targets."""
    excludes: tuple[str, ...] = ()
    """URNs or globs of the resources to leave alone."""
    exclude_dependents: bool = False
    replace: tuple[str, ...] = ()
    """URNs or globs of the resources to replace, changed or not."""
    in_sandbox: bool = False
    """Whether the stack's environment is a sandbox: its providers for `aws` and `kubernetes` are used then, even where
    others are installed."""
    verbose: bool = False
    """Show what provider plugins print, too, and not only what they log."""

    @property
    def is_limited(self) -> bool:
        """Whether it leaves a part of the stack alone."""
        return bool(self.targets or self.excludes)

    @property
    def is_dry(self) -> bool:
        """Whether it only says what would happen."""
        return self.verb == "preview" or self.preview_only


@dataclass
class Result:
    """How it ended. `exit` is the CLI's: 0, 7 for unexpected changes, 1 for everything else that went wrong."""

    exit: int
    outputs: dict[str, Any] = field(default_factory=dict[str, Any])
    """The stack's outputs, secrets as `[secret]`."""
    changes: dict[str, int] = field(default_factory=dict[str, int])
    messages: list[str] = field(default_factory=list[str])
