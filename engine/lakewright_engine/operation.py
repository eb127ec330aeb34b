"""The operations of the engine on a stack, and their results."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from lakewright_engine.model.errors import UnsupportedFeatureError
from lakewright_engine.plans.deleted_contents import CountContents, DeletedContents
from lakewright_engine.project.project import PulumiProject

UNEXPECTED_CHANGES = 7
"""Exit code of unexpected changes, as for the Pulumi CLI."""

POLICY_PACK_VARIABLE = "PULUMI_OPTION_POLICY_PACK"
"""The Pulumi CLI takes policy packs from an environment variable as well."""


@dataclass(frozen=True)
class Operation:
    """An operation on a stack. `verb` is `preview`, `up`, `refresh` or `destroy`."""

    verb: str
    project: PulumiProject
    stack: str
    _: KW_ONLY
    refresh: bool = False
    """Refresh the state before the program runs."""
    expect_no_changes: bool = False
    preview_only: bool = False
    """Only preview a `refresh` or `destroy`."""
    parallel: int = 16
    targets: tuple[str, ...] = ()
    """URNs or globs of the targeted resources; by default all."""
    target_dependents: bool = False
    """Also target the dependents of the targets."""
    excludes: tuple[str, ...] = ()
    """URNs or globs of the excluded resources."""
    exclude_dependents: bool = False
    replace: tuple[str, ...] = ()
    """URNs or globs of resources to replace, even if unchanged."""
    in_sandbox: bool = False
    """Whether the stack's environment is a sandbox. Its providers for `aws` and `kubernetes` are then used, even if
    others are installed."""
    verbose: bool = False
    """Display the output of provider plugins in addition to their log messages."""
    policy_packs: tuple[str, ...] = ()
    """Folders of policy packs, for the Pulumi CLI. The embedded engine runs none and refuses them."""
    policy_pack_configs: tuple[str, ...] = ()
    """Files with settings of the policy packs, in the same order."""
    save_plan: Path | None = None
    """The file in which a `preview` keeps its plan."""
    plan: Path | None = None
    """The plan that an `up` follows. The options that decide the steps come from it."""
    plan_inputs: Mapping[str, str] = field(default_factory=dict[str, str])
    """Hashes of inputs that the project does not name, by the name that messages use."""
    count_contents: CountContents | None = None
    """Counts the contents of the objects that a plan deletes. Without it, a plan records no contents."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Additional environment variables of the program and of provider plugins."""

    @property
    def is_limited(self) -> bool:
        """Return whether the operation targets only a part of the stack."""
        return bool(self.targets or self.excludes)

    @property
    def is_dry(self) -> bool:
        """Return whether the operation is a preview."""
        return self.verb == "preview" or self.preview_only


@dataclass(frozen=True)
class PlanSummary:
    """A plan file, the hash of its content, and whether it is signed with the stack's secrets."""

    file: str
    sha256: str
    signed: bool


@dataclass(frozen=True)
class RemainingStep:
    """A step that an interrupted run did not finish."""

    op: str
    """The operation; `check` for a resource that was not compared with the program."""
    type: str
    name: str
    urn: str = ""
    """Empty for a resource that the program declared and did not register."""


@dataclass(frozen=True)
class Remainder:
    """Steps that an interrupted run did not take, and the command that continues it."""

    steps: tuple[RemainingStep, ...]
    is_complete: bool
    """Whether these are all steps. A program that was stopped may not have declared all resources."""
    command: str

    def to_json(self) -> dict[str, Any]:
        """Return the form for `--json`."""
        steps = [{"op": step.op, "type": step.type, "name": step.name, "urn": step.urn} for step in self.steps]
        return {"steps": steps, "complete": self.is_complete, "command": self.command}


@dataclass
class Result:
    """The result of an operation.

    `exit` is 0, 7 for unexpected changes, or 1 for other errors, as for the Pulumi CLI.
    """

    exit: int
    outputs: dict[str, Any] = field(default_factory=dict[str, Any])
    """The stack's outputs, secrets as `[secret]`."""
    changes: dict[str, int] = field(default_factory=dict[str, int])
    messages: list[str] = field(default_factory=list[str])
    plan: PlanSummary | None = None
    """The plan that was saved or followed."""
    deleted_contents: list[DeletedContents] | None = None
    """The contents of the objects that a preview would delete; None if they were not counted."""
    is_interrupted: bool = False
    """Whether a signal ended the run before it had taken all steps."""
    declared_resources: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Type and name of the resources that the program of an interrupted run declared."""
    remainder: Remainder | None = None
    """Steps that an interrupted run did not take."""


def refuse_policy_packs(operation: Operation) -> None:
    """Raise UnsupportedFeatureError if the operation shall be checked by policy packs."""
    if operation.verb not in ("preview", "up"):
        return
    if operation.policy_packs:
        request_source = "--policy-pack"
    elif os.environ.get(POLICY_PACK_VARIABLE):
        request_source = POLICY_PACK_VARIABLE
    else:
        return
    raise UnsupportedFeatureError(
        f"{request_source}: the embedded engine does not run policy packs, so nothing would be checked; "
        "use --engine pulumi"
    )
