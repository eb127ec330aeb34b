"""Kept plans on the Pulumi CLI: its own update plan, with the checks that the CLI does not make before it starts.

The CLI holds an update to the operations and inputs of its plan. It does not check whether the state, the program
and the objects on the servers are as in the preview, and it does not sign plans.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lakewright_engine.display.property_diff import redact_json
from lakewright_engine.display.report import OperationReport, StepReport
from lakewright_engine.kept_plan import plan_options, plan_summary
from lakewright_engine.model.errors import PlanError
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.model.urns import is_provider_type
from lakewright_engine.plans.deleted_contents import (
    CONTENTS,
    DELETIONS,
    contents_to_json,
    count_deleted,
    refuse_changed_contents,
)
from lakewright_engine.plans.embedded import plan_header
from lakewright_engine.plans.inputs import plan_inputs
from lakewright_engine.plans.model import KnownObject
from lakewright_engine.plans.plan_file import (
    NEW_PLAN_HINT,
    SIGNATURE_KEY,
    PlanDocument,
    read_plan,
    refuse_other_file,
    write_plan,
)
from lakewright_engine.plans.recorder import SEED_BYTES
from lakewright_engine.plans.requirements import refuse_changed_inputs, refuse_changed_state, refuse_foreign_plan
from lakewright_engine.plans.server_objects import refuse_moved
from lakewright_engine.plans.session import SEED_VARIABLE
from lakewright_engine.plans.state_version import state_version
from lakewright_engine.state.secrets import PassphraseManager
from typing_extensions import override

from lakewright.cli.engines.cli_state import export_deployment
from lakewright.cli.errors import NO_MESSAGE

if TYPE_CHECKING:
    from lakewright_engine import Operation, Result
    from pulumi.automation import Stack
    from pulumi.automation.events import EngineEvent, StepEventStateMetadata

ENGINE = "pulumi"
UNSIGNED = (
    "warning: the plan is not signed, because the stack's secrets provider has no passphrase; protect the "
    "file from changes"
)
_UNTOUCHED = ("same", "create", "read", "refresh", "import")
_VIOLATION = re.compile(r"(violates plan: properties changed:).*", re.DOTALL)
_REFUSED_SECRET = re.compile(
    r"value \{(?:(?!\} has a problem:|&\{\{).)*&\{\{(?:(?!\} has a problem:).)*\} has a problem:", re.DOTALL
)
"""A refused input within which a secret is, as Go prints it."""
_CHANGED_KEY = re.compile(r"(?:^|, )[-+~=]{2}([\w.:/-]+)")


class CliPlan:
    """An operation without a plan."""

    def __init__(self, operation: Operation, stack: Stack) -> None:
        """Take part in an operation on a stack."""
        self.operation = operation
        self._stack = stack
        self.file: str | None = None
        """The CLI's own plan: the file to write or to follow."""
        self.environment: dict[str, str] = {}
        """Environment variables of the CLI."""

    def complete(self, report: OperationReport, result: Result) -> None:
        """Complete the result of an operation that did not fail."""

    def redact(self, text: str) -> str:
        """Return a message of the CLI without secrets: it prints inputs that a provider refuses."""
        return _REFUSED_SECRET.sub("value {[secret]} has a problem:", text)

    def redact_event(self, event: EngineEvent) -> None:
        """Remove secrets from an event's message."""
        if event.diagnostic_event is not None:
            event.diagnostic_event.message = self.redact(event.diagnostic_event.message)

    def _deployment(self) -> dict[str, Any]:
        return export_deployment(self._stack)

    def _current_inputs(self) -> dict[str, str]:
        return {**plan_inputs(self.operation.project, self.operation.stack), **self.operation.plan_inputs}

    def _manager(self, deployment: dict[str, Any], salt: str = "") -> PassphraseManager | None:
        """Return the stack's secrets manager; None if it is not a passphrase."""
        settings = self.operation.project.stack_config(self.operation.stack)
        provider = cast("dict[str, Any]", deployment.get("secrets_providers") or {})
        state = cast("dict[str, str]", provider.get("state") or {})
        live_salt = settings.salt or state.get("salt")
        if not live_salt or settings.body.get("secretsprovider") not in (None, "", "default", "passphrase"):
            return None
        return PassphraseManager.from_salt(salt or live_salt, self.operation.stack)

    def _read_objects(self, urns: Sequence[str] | None) -> list[KnownObject]:
        """Read the objects of the URNs, or all objects of the operation, by a preview of a refresh."""
        if urns is not None and not urns:
            return []
        operation, report = self.operation, OperationReport()
        limits: dict[str, Any] = {"target": list(urns)} if urns is not None else _limits(operation)
        self._stack.preview_refresh(parallel=operation.parallel, color="never", on_event=report.take, **limits)
        return _objects(report.steps)


class SavedCliPlan(CliPlan):
    """A preview whose plan is kept."""

    def __init__(self, operation: Operation, stack: Stack, folder: Path) -> None:
        """Note the versions of state and inputs before the preview."""
        super().__init__(operation, stack)
        assert operation.save_plan is not None
        refuse_other_file(operation.save_plan)
        deployment = self._deployment()
        self._secrets = self._manager(deployment)
        if self._secrets is not None:
            self._secrets.unlock()
        self._state = state_version(deployment)
        self._inputs = self._current_inputs()
        self._seed = os.urandom(SEED_BYTES)
        self.environment = {SEED_VARIABLE: self._seed.hex()}
        self.file = str(folder / "plan.json")

    @override
    def complete(self, report: OperationReport, result: Result) -> None:
        operation = self.operation
        assert operation.save_plan is not None
        assert self.file is not None
        if result.exit:
            report.messages.append("warning: no plan was saved, because the preview failed")
            return
        deployment = self._deployment()
        objects = _objects(report.steps) if operation.refresh else self._read_objects(_list_touched(report, deployment))
        result.deleted_contents = count_deleted(operation.count_contents, deployment, _find_deleted(report))
        if state_version(self._deployment()) != self._state or self._current_inputs() != self._inputs:
            raise PlanError("state or program changed during the preview, so no plan was saved: run it again")
        version = self._stack.workspace.pulumi_version
        body = {
            **plan_header(
                operation.project,
                operation.stack,
                engine=(ENGINE, version),
                options=plan_options(operation),
                state=self._state,
                inputs=self._inputs,
            ),
            "changes": report.changes,
            "steps": [_step_to_json(step) for step in report.steps if step.op not in ("same", "refresh")],
            CONTENTS: contents_to_json(result.deleted_contents),
            "objects": [_object_to_json(planned_object) for planned_object in objects],
            "seed": self._seed.hex(),
            "pulumi_plan": json.loads(Path(self.file).read_text(encoding="utf-8")),
        }
        if self._secrets is not None:
            body["secrets_provider"] = {"type": self._secrets.kind, "state": {"salt": self._secrets.salt}}
        else:
            report.messages.append(UNSIGNED)
        key = self._secrets.derive_key(SIGNATURE_KEY) if self._secrets is not None else None
        result.plan = plan_summary(write_plan(operation.save_plan, body, key))


class FollowedCliPlan(CliPlan):
    """An update that follows a plan."""

    def __init__(self, operation: Operation, stack: Stack, folder: Path) -> None:
        """Open a plan, and check all that the CLI does not check.

        Raises:
            PlanError: The plan cannot be used. Nothing was touched.
        """
        super().__init__(operation, stack)
        assert operation.plan is not None
        document = read_plan(operation.plan)
        version = stack.workspace.pulumi_version
        project, name = operation.project.name, operation.stack
        refuse_foreign_plan(document, engine=ENGINE, version=version, project=project, stack=name)
        deployment = self._deployment()
        manager = self._manager(deployment, document.salt)
        if manager is not None:
            document.verify(manager.derive_key(SIGNATURE_KEY))
        refuse_changed_inputs(document, self._current_inputs())
        refuse_changed_state(document, deployment, used="")
        self.operation = replace(operation, **vars(document.options))
        self._document = document
        try:
            planned = [_object_from_json(planned_object) for planned_object in document.body["objects"]]
            self.environment = {SEED_VARIABLE: document.body["seed"]}
            content = json.dumps(document.body["pulumi_plan"])
        except (KeyError, TypeError, AttributeError) as error:
            raise PlanError(f"{document.file} is damaged: {type(error).__name__}: {error}") from error
        touched = None if document.options.refresh else sorted({planned_object.state.urn for planned_object in planned})
        refuse_moved(planned, self._read_objects(touched))
        refuse_changed_contents(document, deployment, operation.count_contents)
        file = folder / "plan.json"
        file.write_text(content, encoding="utf-8")
        self.file = str(file)

    @override
    def complete(self, report: OperationReport, result: Result) -> None:
        if not self._document.is_signed:
            report.messages.append(UNSIGNED)
        result.plan = plan_summary(self._document)

    @override
    def redact(self, text: str) -> str:
        if text == NO_MESSAGE:  # the CLI prints no reason if outputs differ from the plan
            command = "`lakewright preview --save-plan FILE`"
            return f"{NO_MESSAGE}. If the stack's outputs differ from the plan, make a new plan: {command}"
        violation = _VIOLATION.search(text)
        if violation is None:
            return super().redact(text)
        property_names = _property_names(self._document)
        keys = [
            key
            for key in _CHANGED_KEY.findall(violation[0].partition(violation[1])[2].strip())
            if key in property_names
        ]
        names = ", ".join(dict.fromkeys(keys)) or "properties that are not in the plan"
        beginning = text[: violation.start()]
        return f"{beginning}{violation[1]} {names}. {NEW_PLAN_HINT}"


@contextmanager
def open_cli_plan(operation: Operation, stack: Stack) -> Generator[CliPlan]:
    """Yield the plan that an operation keeps or follows. Raise PlanError if it cannot be used."""
    with tempfile.TemporaryDirectory(prefix="lakewright-plan-") as name:
        folder = Path(name)
        if operation.save_plan is not None:
            yield SavedCliPlan(operation, stack, folder)
        elif operation.plan is not None:
            yield FollowedCliPlan(operation, stack, folder)
        else:
            yield CliPlan(operation, stack)


def observe(plan: CliPlan, on_event: Callable[[EngineEvent], None]) -> Callable[[EngineEvent], None]:
    """Return a receiver of events that removes secrets from messages about the plan."""

    def receive(event: EngineEvent) -> None:
        plan.redact_event(event)
        on_event(event)

    return receive


def _limits(operation: Operation) -> dict[str, Any]:
    return {
        "target": list(operation.targets) or None,
        "target_dependents": operation.target_dependents,
        "exclude": list(operation.excludes) or None,
        "exclude_dependents": operation.exclude_dependents,
    }


def _list_touched(report: OperationReport, deployment: dict[str, Any]) -> list[str]:
    """Return the URNs of objects that the steps change or delete."""
    resources = cast("list[dict[str, Any]]", deployment.get("resources") or [])
    objects = {item["urn"] for item in resources if item.get("custom") and not is_provider_type(item["type"])}
    return sorted({step.urn for step in report.steps if step.op not in _UNTOUCHED} & objects)


def _find_deleted(report: OperationReport) -> set[tuple[str, str]]:
    """Return URN and id of the objects that the steps delete."""
    return {
        (step.urn, str(step.metadata.old.id))
        for step in report.steps
        if step.op in DELETIONS and step.metadata is not None and step.metadata.old is not None
    }


def _objects(steps: Iterable[StepReport]) -> list[KnownObject]:
    """Return the objects that a refresh has read, without secrets and internal properties."""
    objects: list[KnownObject] = []
    for step in steps:
        if step.op != "refresh" or step.metadata is None:
            continue
        new, old = step.metadata.new, step.metadata.old
        side = new or old
        if side is None or not side.custom or is_provider_type(side.type):
            continue
        inputs, outputs = (_visible(getattr(new, part, None)) for part in ("inputs", "outputs"))
        state = ResourceState(step.urn, side.type, True, id=side.id, inputs=inputs, outputs=outputs)  # noqa: FBT003
        objects.append(KnownObject(state, exists=new is not None and step.result != "delete"))
    return objects


def _visible(properties: Any) -> dict[str, Any]:
    members = cast("dict[str, Any]", redact_json(properties or {}))
    return {key: value for key, value in members.items() if not key.startswith("__")}


def _object_to_json(planned_object: KnownObject) -> dict[str, Any]:
    state = planned_object.state
    body = {"urn": state.urn, "type": state.type, "id": state.id, "inputs": state.inputs, "outputs": state.outputs}
    return {"exists": planned_object.exists, "state": body}


def _object_from_json(body: dict[str, Any]) -> KnownObject:
    return KnownObject(ResourceState(custom=True, **body["state"]), exists=bool(body["exists"]))


def _step_to_json(step: StepReport) -> dict[str, Any]:
    metadata = step.metadata
    details = (metadata.detailed_diff or {}) if metadata is not None else {}
    detailed = {
        path: [str(getattr(item.diff_kind, "value", item.diff_kind)), item.input_diff] for path, item in details.items()
    }
    old, new = (getattr(metadata, side, None) for side in ("old", "new"))
    return {
        "op": step.op,
        "urn": step.urn,
        "type": step.type,
        "diff": {"keys": step.keys, "replace_keys": [], "detailed": detailed or None},
        "old": _state_to_json(old) if old is not None else None,
        "new": _state_to_json(new) if new is not None else None,
    }


def _state_to_json(state: StepEventStateMetadata) -> dict[str, Any]:
    return {
        "inputs": _visible(state.inputs),
        "parent": state.parent,
        "custom": bool(state.custom),
        "retainOnDelete": bool(state.retain_on_delete),
    }


def _property_names(document: PlanDocument) -> set[str]:
    """Return the names of properties in the CLI's plan. Names are not secret."""
    plans = cast("dict[str, dict[str, Any]]", document.body["pulumi_plan"].get("resourcePlans") or {})
    names: set[str] = set()
    for plan in plans.values():
        goal = cast("dict[str, Any]", plan.get("goal") or {})
        for part in ("inputDiff", "outputDiff"):
            diff = cast("dict[str, Any]", goal.get(part) or {})
            names |= {*(diff.get("adds") or ()), *(diff.get("updates") or ()), *(diff.get("deletes") or ())}
        names |= set(plan.get("state") or ())
    return names
