"""Enforce the limits of one stack: suspend its declared grants of writers, and grant them again.

The state is never written. The record on the server is written before a grant is revoked, and shortened after grants
are granted again. It also names the quota that starts no computing unit before the quota is created, and no longer if
that fails: the run that follows the removal of a limit deletes only a quota that is recorded. A run that was killed is
completed by the next run. A run keeps what another run records at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Literal

from lakewright.drift.objects.sealed_values import seal_secrets
from lakewright.drift.provider_classes import provider_class
from lakewright.drift.stack_providers import create_provider
from lakewright.errors import LakewrightError
from lakewright.lakekeeper.api.management import limit_records
from lakewright.lakekeeper.grants.grant import GrantArgs, GrantProvider
from lakewright.lakekeeper.tenant.record_args import TenantRecordArgs
from lakewright.limits.compute_enforcement import UnitNamespace, find_namespace
from lakewright.limits.limited_parts import MeasuredLimit, find_full_parts, list_reached_limits
from lakewright.ownership.limit_mark import COMPUTE_PART, LimitMark, SuspendedGrant
from lakewright.ownership.mark import format_stack

if TYPE_CHECKING:
    from lakewright_engine.model.resources import ResourceState

    from lakewright.drift.session import ScanSession
    from lakewright.fleet.states import StackState
    from lakewright.lakekeeper.api.connection.client import Client
    from lakewright.lakekeeper.provider.run_context import RunContext

_DYNAMIC = "pulumi-python:dynamic/lakekeeper:"


@dataclass
class StackEnforcement:
    """The grants that a run suspended or granted again in one stack."""

    stack: str
    full_parts: tuple[str, ...] = ()
    """Parts whose limits are enforced after the run."""
    limits: list[MeasuredLimit] = field(default_factory=list[MeasuredLimit])
    """The measured limits of parts that can be enforced."""
    suspended: list[str] = field(default_factory=list[str])
    """Names of the grants that the run suspended."""
    restored: list[str] = field(default_factory=list[str])
    """Names of the grants that the run granted again."""
    units: Literal["stopped", "allowed"] | None = None
    """Whether the run stopped or allowed starts of computing units; None if it changed neither."""
    problems: list[str] = field(default_factory=list[str])

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "stack": self.stack,
            "full": list(self.full_parts),
            "limits": [limit.to_json() for limit in self.limits],
            "suspended": self.suspended,
            "restored": self.restored,
            "units": self.units,
            "problems": self.problems,
        }


@dataclass(frozen=True)
class _DeclaredGrant:
    """A grant in the state, with its provider."""

    name: str
    id: str
    outs: dict[str, Any]
    provider: GrantProvider
    args: GrantArgs

    @property
    def key(self) -> tuple[str, ...]:
        """Object, privilege and principal."""
        return str(self.args.on), self.args.held.privilege, self.args.held.kind, self.args.held.principal

    @property
    def parts(self) -> list[str]:
        """Parts of the tenant whose limits suspend the grant."""
        return self.args.limited_by.parts if self.args.limited_by else []


@dataclass(frozen=True)
class StackEnforcer:
    """Enforces the limits of a stack in its project."""

    session: ScanSession
    context: RunContext
    stack: str
    read_state: Callable[[], StackState]
    """Returns the state of the stack as it is now."""

    def run(self, limits: Sequence[MeasuredLimit], *, is_complete: bool) -> StackEnforcement:
        """Suspend the grants that hold in full parts, and grant suspended grants of other parts again.

        Args:
            limits: The limits of the stack with measured usage.
            is_complete: Whether all of its data was measured.

        Raises:
            LakewrightError: A server refused a call or did not respond, or an object belongs to another stack.
        """
        enforcement = StackEnforcement(self.stack)
        state = self.read_state()
        record = self._find_record(state)
        if record is None:
            return enforcement
        if state.locked:
            problem = f"an update is running ({', '.join(state.locked)}); the next run enforces limits"
            enforcement.problems.append(problem)
            return enforcement
        client, args = record
        if args.bucket_tag is None:
            return enforcement
        grants = [*self._list_grants(state)]
        namespace = find_namespace(state)
        enforceable = {part for grant in grants for part in grant.parts}
        hours = [limit for limit in limits if limit.part == COMPUTE_PART]
        if namespace is not None and namespace.is_enforceable:
            enforceable.add(COMPUTE_PART)
        elif namespace is not None and any(limit.is_reached for limit in hours) and (gap := namespace.describe_gap()):
            enforcement.problems.append(gap)
        enforcement.limits = [limit for limit in limits if limit.part in enforceable]
        mark = limit_records.find_mark(client, args.project, args.bucket_tag)
        if not enforceable and mark is None:
            return enforcement
        before = mark or LimitMark(format_stack(self.session.project.name, self.stack), ())
        full = set(find_full_parts(limits, enforceable, before.parts, is_complete=is_complete))
        is_announced = COMPUTE_PART in full and COMPUTE_PART not in before.parts
        if is_announced:
            parts = tuple(sorted({*before.parts, COMPUTE_PART}))
            reached = list_reached_limits(limits, parts, before.reached, self.session.clock())
            announcement = _stamp(replace(before, parts=parts, reached=reached))
            limit_records.write_mark(client, args.project, args.bucket_tag, announcement)
        # A quota can exist without a record: the record was deleted, or a run reached another cluster.
        may_have_quota = COMPUTE_PART in before.parts or (COMPUTE_PART in enforceable and bool(hours))
        if COMPUTE_PART in full or may_have_quota:
            is_set = self._limit_units(namespace, enforcement, is_reached=COMPUTE_PART in full)
            if not is_set:
                # Nothing changed, so the record names the part if it did before this run.
                full = (full - {COMPUTE_PART}) | ({COMPUTE_PART} & set(before.parts))
        enforcement.full_parts = tuple(sorted(full))
        reached = list_reached_limits(limits, full, before.reached, self.session.clock())
        after = replace(before, parts=enforcement.full_parts, reached=reached)
        self._suspend(client, args, after, grants, enforcement, is_new=mark is None, is_announced=is_announced)
        return enforcement

    def _limit_units(self, namespace: UnitNamespace | None, enforcement: StackEnforcement, *, is_reached: bool) -> bool:
        """Stop or allow starts of computing units. Return whether the namespace is as it should be now."""
        if namespace is None:
            return True  # its quota was deleted with it
        try:
            if namespace.set_limit(self.session, is_reached=is_reached):
                enforcement.units = "stopped" if is_reached else "allowed"
        except LakewrightError as error:
            verb = "stopped" if is_reached else "allowed"
            enforcement.problems.append(f"starts of computing units were not {verb}: {error}")
            return False
        return True

    def _suspend(
        self,
        client: Client,
        args: TenantRecordArgs,
        mark: LimitMark,
        grants: Sequence[_DeclaredGrant],
        enforcement: StackEnforcement,
        *,
        is_new: bool,
        is_announced: bool,
    ) -> None:
        project_id, record_id = args.project, str(args.bucket_tag)
        client.lists.forget()
        covered = [grant for grant in grants if mark.covers(grant.parts)]
        live = _find_live(covered, enforcement)
        # An update may have recorded grants since the mark was read.
        latest = limit_records.find_mark(client, project_id, record_id) or mark
        mark = replace(mark, write_id=latest.write_id)
        is_enforcing = is_announced or bool(live)
        suspended = tuple(sorted({*latest.suspended, *(entry for _, entry in live)}))
        if mark.parts:
            # Nothing is revoked that is not recorded.
            mark = _stamp(mark) if is_enforcing else mark
            limit_records.write_mark(client, project_id, record_id, replace(mark, suspended=suspended))
        elif is_new and not is_announced:
            return
        for grant, _ in live:
            try:
                grant.provider.delete(grant.id, grant.outs)
            except LakewrightError as error:  # its entry is recorded, so the next run tries again
                enforcement.problems.append(f"{grant.name} was not suspended: {error}")
            else:
                enforcement.suspended.append(grant.name)
        remaining = self._restore(mark, suspended, enforcement)
        present = limit_records.find_mark(client, project_id, record_id)
        if present is not None and present.write_id != mark.write_id:
            # The other run may have revoked what this run has granted again, so all of its entries remain.
            enforcement.problems.append("another run suspended grants at the same time; the next run continues")
            after = _merge_marks(replace(mark, suspended=remaining), present)
        else:
            added = set(present.suspended) - set(suspended) if present else set[SuspendedGrant]()
            after = replace(mark, suspended=tuple(sorted({*remaining, *added})))
        if after.parts or after.suspended:
            limit_records.write_mark(client, project_id, record_id, _stamp(after) if is_enforcing else after)
        else:
            limit_records.delete_mark(client, project_id, record_id)

    def _restore(
        self, mark: LimitMark, suspended: Iterable[SuspendedGrant], enforcement: StackEnforcement
    ) -> tuple[SuspendedGrant, ...]:
        """Grant what the full parts no longer suspend. Return the entries that remain suspended.

        Only grants that the state has now are granted: an update may have removed a grant from the stack.
        """
        state = self.read_state()
        if state.locked:
            enforcement.problems.append(f"an update is running ({', '.join(state.locked)}); the next run grants again")
            return tuple(suspended)
        grants = {grant.key: grant for grant in self._list_grants(state)}
        remaining: list[SuspendedGrant] = []
        for entry in suspended:
            grant = grants.get((entry.on, entry.privilege, entry.kind, entry.principal))
            if grant is None:
                continue
            if mark.covers(grant.parts):
                remaining.append(entry)
                continue
            try:
                if grant.provider.restore(grant.outs):
                    enforcement.restored.append(grant.name)
            except LakewrightError as error:
                enforcement.problems.append(f"{grant.name} was not granted again: {error}")
                remaining.append(entry)
        return tuple(remaining)

    def _find_record(self, state: StackState) -> tuple[Client, TenantRecordArgs] | None:
        """Return the tenant's record in a state, with a client of its server; None without a record."""
        resource = next((entry for entry in state.resources if entry.type == f"{_DYNAMIC}TenantRecord"), None)
        provider_type = provider_class(resource.type) if resource else None
        if resource is None or provider_type is None:
            return None
        provider: Any = create_provider(provider_type, self.session, self.stack, self.context)
        args = TenantRecordArgs.from_state(_seal(resource))
        return provider.connect_as_recorded(args.server), args

    def _list_grants(self, state: StackState) -> Iterable[_DeclaredGrant]:
        for resource in state.resources:
            if resource.type != f"{_DYNAMIC}Grant" or resource.delete:
                continue
            provider = create_provider(GrantProvider, self.session, self.stack, self.context)
            if isinstance(provider, GrantProvider):
                outs = _seal(resource)
                name = resource.urn.rpartition("::")[2]
                yield _DeclaredGrant(name, str(resource.id), outs, provider, GrantArgs.from_state(outs))


def _find_live(
    grants: Iterable[_DeclaredGrant], enforcement: StackEnforcement
) -> list[tuple[_DeclaredGrant, SuspendedGrant]]:
    """Return the grants that exist at the server. Note a grant that cannot be read as a problem."""
    live: list[tuple[_DeclaredGrant, SuspendedGrant]] = []
    for grant in grants:
        try:
            if entry := grant.provider.find_live(grant.outs):
                live.append((grant, entry))
        except LakewrightError as error:
            enforcement.problems.append(f"{grant.name} was not suspended: {error}")
    return live


def _stamp(mark: LimitMark) -> LimitMark:
    """Return a mark with a new id of its write, by which a run at the same time detects the write."""
    return replace(mark, write_id=token_hex(8))


def _merge_marks(mark: LimitMark, other: LimitMark) -> LimitMark:
    """Return a mark with the parts, limits and suspended grants of both."""
    reached = {(entry.part, entry.quantity): entry for entry in (*mark.reached, *other.reached)}
    return replace(
        other,
        parts=tuple(sorted({*mark.parts, *other.parts})),
        reached=tuple(sorted(reached.values())),
        suspended=tuple(sorted({*mark.suspended, *other.suspended})),
    )


def _seal(resource: ResourceState) -> dict[str, Any]:
    outputs, _ = seal_secrets(resource.outputs)
    return outputs
