"""Plan and run the step of each registered resource: none, a creation, an update or a replacement."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from lakewright_engine.model.errors import DeploymentStoppedError, InitializationError, ProgramError
from lakewright_engine.model.paths import apply_ignore_changes
from lakewright_engine.model.properties import has_unknown, is_equal, to_display_json
from lakewright_engine.model.resources import Properties, ResourceState, Unknown
from lakewright_engine.model.signatures import UNKNOWN
from lakewright_engine.model.step import DeploymentStep, Diff
from lakewright_engine.model.urns import ROOT_STACK_TYPE, is_provider_type, make_urn, split_reference, urn_name
from lakewright_engine.planning.early_deletions import EarlyDeletions
from lakewright_engine.planning.provider_resources import DefaultProviders, register_provider
from lakewright_engine.planning.replacement import check_replaceable
from lakewright_engine.planning.replacement_trigger import is_secret_change, is_triggered, refuse_nested_secret
from lakewright_engine.planning.untargeted import UntargetedResources, report_unchanged
from lakewright_engine.providers.provider import InputFailure, Provider, ReadResult, public_config
from lakewright_engine.registration.aliases import Aliases
from lakewright_engine.registration.desired_state import DesiredState
from lakewright_engine.steps.deployment import Deployment, now
from lakewright_engine.steps.resource_diff import apply_replace_on_changes, resource_diff


class Planner:
    """Plans and runs steps.

    Thread-safe: each registration is processed on its own thread, and a lock guards the records.
    """

    def __init__(self, deployment: Deployment) -> None:
        """Start without registered resources."""
        self._deployment = deployment
        self._lock = threading.Lock()
        self._aliases = Aliases(deployment.project, deployment.stack)
        self._urns: set[str] = set()
        self._desired_states: dict[str, DesiredState] = {}
        self._steps: dict[str, DeploymentStep] = {}
        self._stack_outputs: tuple[DeploymentStep, Properties] | None = None
        self._replaced: set[str] = set()
        self._imported: set[str] = set()
        self._early = EarlyDeletions(deployment)
        self._untargeted = UntargetedResources(deployment)
        self.defaults = DefaultProviders(deployment, self.register)

    @property
    def registered_urns(self) -> set[str]:
        """URNs that the program has registered or read, both new and old URNs."""
        return self._urns | self._aliases.matched | self._untargeted.needed

    def report_kept_dependencies(self) -> None:
        """Report resources that the program dropped and kept states depend on as unchanged."""
        registered = self._urns | self._aliases.matched
        olds = self._deployment.olds
        report_unchanged(
            self._deployment, [olds[urn] for urn in sorted(self._untargeted.needed - registered) if urn in olds]
        )

    def find_desired_state(self, urn: str) -> DesiredState | None:
        """Return the desired state of a registered resource."""
        return self._desired_states.get(urn)

    def outputs(self, urn: str, outputs: Properties) -> None:
        """Record the outputs that a component or the stack registers."""
        step = self._steps.get(urn)
        if step is None or step.new is None:
            self._deployment.check_running()
            raise ProgramError(f"outputs were registered for {urn}, which is not a resource of this program")
        if step.is_skipped:
            return
        self._deployment.observer.outputs(urn, outputs)
        if step.state.type == ROOT_STACK_TYPE:
            self._stack_outputs = step, outputs
            self._deployment.finish_component(step)
            return
        self._set_outputs(step.new, outputs)
        self._deployment.finish_component(step)
        self._deployment.events.outputs(step)

    def save_stack_outputs(self, *, has_failed: bool) -> None:
        """Save the outputs that the program has exported, after all steps.

        A run that failed keeps earlier outputs beside them: its program may have ended before it exported them. Source:
        `executeRegisterResourceOutputs` in Pulumi's `pkg/resource/deploy/step_executor.go`, version 3.260.
        """
        if self._stack_outputs is None:
            return
        step, outputs = self._stack_outputs
        if step.new is None:
            return
        old = self._deployment.olds.get(step.urn)
        kept_outputs = old.outputs if has_failed and old is not None else {}
        self._set_outputs(step.new, kept_outputs | outputs)
        self._deployment.events.outputs(step)

    def _set_outputs(self, new: ResourceState, outputs: Properties) -> None:
        # Pulumi compares secrets by content: an output may have become secret, or no longer be.
        if new.outputs != outputs or not is_equal(new.outputs, outputs):
            self._deployment.journal.change(lambda: setattr(new, "outputs", outputs))

    def register(self, desired: DesiredState) -> tuple[ResourceState, DeploymentStep]:
        """Bring a resource to its desired state.

        Raises:
            ProgramError: The desired state is impossible.
            DeploymentStoppedError: The run has ended.
        """
        deployment = self._deployment
        deployment.check_running()
        refuse_nested_secret(desired.replacement_trigger, f"{desired.type} {desired.name!r}")
        urn, old, new = self._prepare(desired)
        if is_provider_type(desired.type):
            deployment.scope.includes(new)
            self._untargeted.refuse_unmet_dependencies(new)
            step = register_provider(deployment, desired, old, new, self._refuse, early=self._early)
            if step.op == "create-replacement":
                self._replaced.add(urn)
            self._record_step(step)
            return new, step
        provider = None
        if desired.custom:
            new.provider = desired.provider or self.defaults.reference(
                desired.type, desired.version, desired.plugin_url
            )
            provider = deployment.registry.get(new.provider)
        if (
            desired.custom
            and desired.import_id
            and (old is None or old.external or desired.import_id != (old.import_id or old.id))
        ):
            old = self._import(desired, old, new, provider)
            new = replace(desired.to_state(urn, old), provider=new.provider, created=new.created)
        return self._plan(desired, old, new, provider)

    def read(self, new: ResourceState, version: str, url: str) -> ResourceState:
        """Read an object that the stack does not manage (`X.get`) into the state."""
        deployment = self._deployment
        deployment.check_running()
        with self._lock:
            self._claim(new.urn)
        new.provider = new.provider or self.defaults.reference(new.type, version, url)
        self._untargeted.refuse_unmet_dependencies(new)
        old = deployment.olds.get(new.urn)
        self._early.decide(new.urn)
        replacing = old is not None and not old.external and old.id != new.id
        step = DeploymentStep("read-replacement" if replacing else "read", old, new, logical=not replacing)

        def apply() -> None:
            if new.id != UNKNOWN:
                live_object = deployment.get_provider(new).read(new.urn, new.id, new.inputs, new.inputs)
                if not live_object.id:
                    raise ProgramError(f"resource '{new.id}' does not exist")
                new.id, new.outputs = live_object.id, live_object.outputs
                deployment.mark_secrets(new)
            new.created, new.modified = (old.created, old.modified) if old is not None else ("", "")
            if replacing and old is not None:
                deployment.journal.change(lambda: setattr(old, "delete", True))
                deployment.journal.finish(new=new)
            elif old is not None:
                deployment.journal.replace(old, new)
            else:
                deployment.journal.finish(new=new)

        deployment.run(step, apply)
        self._record_step(step)
        return new

    def _prepare(self, desired: DesiredState) -> tuple[str, ResourceState | None, ResourceState]:
        deployment = self._deployment
        urn = make_urn(deployment.stack, deployment.project, desired.parent, desired.type, desired.name)
        with self._lock:
            self._claim(urn)
            old = self._aliases.find(urn, desired, deployment.olds, self._urns)
            self._desired_states[urn] = desired
        return urn, old, desired.to_state(urn, old)

    def _claim(self, urn: str) -> None:
        if urn in self._urns:
            raise ProgramError(f"Duplicate resource URN '{urn}'; try giving it a unique name")
        if urn in self._aliases.matched:
            raise ProgramError(f"Duplicate resource URN '{urn}': another resource already has it as its alias")
        self._urns.add(urn)

    def _record_step(self, step: DeploymentStep) -> None:
        with self._lock:
            self._steps[step.urn] = step
            if step.new is not None:
                self._deployment.news[step.urn] = step.new

    def _plan(
        self, desired: DesiredState, old: ResourceState | None, new: ResourceState, provider: Provider | None
    ) -> tuple[ResourceState, DeploymentStep]:
        deployment = self._deployment
        if not deployment.scope.includes(new):
            step = self._keep_or_skip(old, new)
            self._record_step(step)
            return step.state, step
        self._untargeted.refuse_unmet_dependencies(new)
        recreating = self._early.includes(new.urn)
        fresh = old is None or old.external or recreating
        if old is not None:
            new.inputs = apply_ignore_changes(new.inputs, old.inputs, desired.ignore_changes)
        if provider is not None:
            before = None if fresh or old is None or self._must_replace(old, new) else old.inputs
            desired_inputs = desired.inputs if before is None else new.inputs
            new.inputs, failures = provider.check(
                new.urn, before or {}, desired_inputs, deployment.observer.random_seed(new.urn)
            )
            self._refuse(new, failures, desired)
        keys = self._early.decide(new.urn, old) if fresh else None
        if old is None:
            step = DeploymentStep("create", None, new)
            deployment.create(step)
        elif keys is not None:
            step = self._recreate(old, new, Diff("some", replace_keys=keys), Diff("some"))
        elif old.external:
            step = self._create_then_delete(old, new, Diff("some"))
        else:
            step = self._change(desired, old, new, provider)
        self._record_step(step)
        return new, step

    def _keep_or_skip(self, old: ResourceState | None, new: ResourceState) -> DeploymentStep:
        """Keep the state of a resource that the operation does not target."""
        keys = self._early.decide(new.urn, old)
        if old is None or keys is None:
            return self._untargeted.keep_or_skip(old, new, self._aliases.current)
        # Its object was deleted early, because a dependency is replaced.
        new.inputs = old.inputs
        return self._recreate(old, new, Diff("some", replace_keys=keys), Diff("some"))

    def _must_replace(self, old: ResourceState, new: ResourceState) -> bool:
        return old.taint or self._deployment.scope.replace.matches(new.urn)

    def _change(
        self, desired: DesiredState, old: ResourceState, new: ResourceState, provider: Provider | None
    ) -> DeploymentStep:
        deployment = self._deployment
        diff, triggered = self._diff(desired, old, new, provider)
        diff = apply_replace_on_changes(diff, desired.replace_on_changes, old.init_errors)
        # Another replacement may have deleted the object during the provider call.
        keys = self._early.decide(new.urn, old)
        if keys is not None:
            return self._recreate(old, new, Diff("some", replace_keys=keys), Diff("some"))
        if diff.changes == "some" or old.pending_replacement or triggered:
            if diff.replaces or triggered or old.pending_replacement:
                return self._replace(desired, old, new, diff, provider)
            step = DeploymentStep("update", old, new, diff)
            deployment.update(step)
        elif old.init_errors:
            step = DeploymentStep("update", old, new, diff)
            deployment.update(step)
        else:
            step = DeploymentStep("same", old, new, diff)
            deployment.same(step, silent=new.urn in self._imported)
        return step

    def _diff(
        self, desired: DesiredState, old: ResourceState, new: ResourceState, provider: Provider | None
    ) -> tuple[Diff, bool]:
        """Return the diff, and whether the replacement trigger requires a replacement."""
        if self._is_triggered(old, new):
            return Diff("some"), True
        if (reason := self._reason_to_replace(old, new)) is not None:
            return Diff("some", replace_keys=[reason]), False
        if provider is None:
            return Diff("none" if is_equal(dict(old.inputs), dict(new.inputs)) else "some"), False
        return resource_diff(provider, new.urn, old, new.inputs, desired.ignore_changes), False

    def _reason_to_replace(self, old: ResourceState, new: ResourceState) -> str | None:
        """Return the property that requires a replacement regardless of the provider; None if there is none."""
        if self._must_replace(old, new):
            return "id"
        if any(urn in self._replaced for urn in new.replace_with):
            return "replaceWith"
        if new.deleted_with in self._replaced:
            return "deletedWith"
        return "provider" if self._provider_changed(old, new) else None

    def _is_triggered(self, old: ResourceState, new: ResourceState) -> bool:
        if has_unknown(new.replacement_trigger) and not self._deployment.dry_run:
            raise ProgramError(f"replacement trigger contains unknowns for {new.urn}")
        if is_secret_change(old.replacement_trigger, new.replacement_trigger):
            message = "the secret replacement trigger has changed, but only a plain trigger replaces the resource"
            self._deployment.events.diagnostic("warning", message, new.urn)
        return is_triggered(old.replacement_trigger, new.replacement_trigger)

    def _provider_changed(self, old: ResourceState, new: ResourceState) -> bool:
        if old.provider == new.provider:
            return False
        if not old.provider or not new.provider:
            return True
        (old_urn, old_id), (new_urn, new_id) = split_reference(old.provider), split_reference(new.provider)
        if self._aliases.current(old_urn) == new_urn and old_id == new_id:
            return False
        before, after = self._deployment.find_provider(old.provider), self._deployment.news.get(new_urn)
        if before is None or after is None:
            return True
        provider = self._deployment.registry.get(new.provider)
        old_config, new_config = public_config(before.inputs), public_config(after.inputs)
        return provider.diff_config(new_urn, old_config, before.outputs, new_config).replaces

    def _replace(
        self, desired: DesiredState, old: ResourceState, new: ResourceState, diff: Diff, provider: Provider | None
    ) -> DeploymentStep:
        check_replaceable(self._deployment, desired, old, new, diff)
        self._replaced.add(new.urn)
        if provider is not None and not self._must_replace(old, new):
            new.inputs, failures = provider.check(
                new.urn, {}, desired.inputs, self._deployment.observer.random_seed(new.urn)
            )
            self._refuse(new, failures, desired)
        first = (
            desired.delete_before_replace if desired.delete_before_replace is not None else diff.delete_before_replace
        )
        if not first and not old.pending_replacement:
            return self._create_then_delete(old, new, diff)
        if first:
            self._deployment.observer.check_replacement(new)
            self._early.execute(old)
        return self._recreate(old, new, diff, diff)

    def _recreate(self, old: ResourceState, new: ResourceState, diff: Diff, replaced: Diff) -> DeploymentStep:
        """Create the new object of a delete-before-replace. `replaced` is the diff of the whole replacement."""
        self._replaced.add(new.urn)
        self._deployment.run(DeploymentStep("replace", old, new, replaced), lambda: None)
        step = DeploymentStep("create-replacement", old, new, diff, logical=False)
        self._deployment.create(step)
        return step

    def _create_then_delete(self, old: ResourceState, new: ResourceState, diff: Diff) -> DeploymentStep:
        step = DeploymentStep("create-replacement", old, new, diff, logical=False)
        self._deployment.create(step)
        self._deployment.run(DeploymentStep("replace", old, new, diff), lambda: None)
        return step

    def _import(
        self, desired: DesiredState, old: ResourceState | None, new: ResourceState, provider: Provider | None
    ) -> ResourceState:
        """Import an existing object. Return its state, which is then compared with the desired state."""
        deployment = self._deployment
        assert provider is not None
        imported = replace(new, inputs={}, outputs={})
        replacing = old is not None and not self._early.includes(new.urn)
        step = DeploymentStep("import-replacement" if replacing else "import", old, imported, logical=not replacing)

        def apply() -> None:
            pending = None if deployment.dry_run else deployment.journal.begin(imported, "importing")
            try:
                live_object = provider.read(new.urn, desired.import_id, {}, {})
            except InitializationError as failed:
                # The object exists: it is imported with its errors, and the next step waits until it is ready.
                imported.init_errors = failed.reasons
                live_object = ReadResult(failed.object_id, failed.outputs, failed.inputs)
            finally:
                if pending is not None:
                    deployment.journal.finish(pending)
            if not live_object.id:
                raise ProgramError(f"resource '{desired.import_id}' does not exist")
            if live_object.inputs is None:
                raise ProgramError(
                    f"the provider of {new.type} does not support importing resources: it returns no inputs"
                )
            imported.id, imported.inputs, imported.outputs = live_object.id, live_object.inputs, live_object.outputs
            deployment.mark_secrets(imported)
            imported.created = imported.modified = now()
            if old is not None:
                deployment.journal.change(lambda: setattr(old, "delete", True))
            deployment.journal.finish(new=imported)

        deployment.run(step, apply)
        self._imported.add(new.urn)
        if replacing:
            deployment.run(DeploymentStep("replace", old, imported), lambda: None)
        return imported

    def _refuse(self, new: ResourceState, failures: list[InputFailure], desired: DesiredState) -> None:
        if not failures:
            return
        for failure in failures:
            text = f"{new.type} resource '{urn_name(new.urn)}': "
            if failure.property:
                value = _format_value(desired.inputs, failure.property)
                text += f"property {failure.property} value {{{value}}} has a problem: {failure.reason}"
            else:
                text += f"has a problem: {failure.reason}"
            self._deployment.fail(text, new.urn)
        raise DeploymentStoppedError


def _format_value(inputs: Properties, path: str) -> Any:
    value = inputs.get(path)
    if has_unknown(value) or isinstance(value, Unknown):
        return "output<unknown>"
    text = to_display_json(value)
    return "[secret]" if text != value else "" if value is None else value
