"""Other stacks of the backend whose state has objects that a stack is about to create, adopt or delete.

The search covers all projects of a backend that this program reads itself. Marks on the servers also protect objects of
stacks in other backends. An object in the stack's own state is searched only if it has no mark yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lakewright.environment.errors import PlatformUnreadableError
from lakewright.ownership.consent import Consent, ConsentKind
from lakewright.ownership.mark import format_stack
from lakewright.project_files.stack_files import find_project_id, raw_spec, shares_project
from lakewright.storage.registry import creates_bucket
from lakewright.validation.documents import as_mapping, as_text

if TYPE_CHECKING:
    from lakewright_engine.state.backend import StateBackend

    from lakewright.cli.ownership.server_access import ServerAccess
    from lakewright.environment.environment import Environment
    from lakewright.project_files.state_objects import StateBucket, StateObjects, StateProject


@dataclass(frozen=True)
class OtherOwner:
    """A stack whose state has an object of the searching stack, or may have it."""

    consent: Consent
    """The object, and what permits its adoption."""
    project: str
    """Pulumi project of the stack."""
    stack: str
    problem: str = ""
    """Why the state cannot be read; empty if it has the object."""

    @property
    def name(self) -> str:
        """The stack as `PROJECT/STACK`."""
        return format_stack(self.project, self.stack)


@dataclass(frozen=True)
class WantedBucket:
    """A bucket that a spec has the stack create."""

    bucket: str
    endpoint: str | None
    """Address of the store that the spec names; None for the environment's AWS."""


def find_other_owners(access: ServerAccess, stack: str, *, deletes: bool = False) -> list[OtherOwner]:
    """Return the stacks whose states have the project or a bucket of this stack's spec, too.

    A state that cannot be read, and does not prove to be about something else, is a possible owner.

    Args:
        access: The project, and its environments and secrets.
        stack: The stack.
        deletes: Whether the run deletes objects: then only objects in the stack's own state matter.
    """
    from lakewright_engine.state.backends import is_native  # noqa: PLC0415 - `--help` needs no engine

    spec = raw_spec(access.project.stack_file(stack))
    is_searchable = bool(spec) and is_native(access.project.state_url)  # the Pulumi CLI would export every stack
    own_objects = access.read_objects(stack) if is_searchable else None
    if own_objects is None:
        return []
    return list(_Search(access, stack, access.project.backend(), spec, own_objects, deletes=deletes).find())


@dataclass(frozen=True)
class _Search:
    access: ServerAccess
    stack: str
    backend: StateBackend
    spec: Mapping[str, Any]
    own_objects: StateObjects
    _: KW_ONLY
    deletes: bool

    def find(self) -> Iterator[OtherOwner]:
        from lakewright_engine.model.errors import StateError  # noqa: PLC0415

        from lakewright.project_files.state_objects import read_state_objects  # noqa: PLC0415

        consents = [*self.wanted_projects, *self.wanted_buckets]
        if not consents:
            return
        for other_project, other in self.backend.find_mentions([consent.name for consent in consents]):
            if (other_project, other) == (self.access.project.name, self.stack):
                continue
            try:
                objects = read_state_objects(self.backend.export(other_project, other))
            except StateError as error:
                yield from (OtherOwner(consent, other_project, other, str(error)) for consent in consents)
                continue
            for consent in consents:
                if self._has(consent, objects):
                    yield OtherOwner(consent, other_project, other)

    @cached_property
    def wanted_projects(self) -> list[Consent]:
        """The tenant's project, unless the stack's state has it with a mark, or other tenants share it."""
        project_id = find_project_id(self.spec)
        if project_id is None or shares_project(self.spec):
            return []
        own_projects = [project for project in self.own_objects.projects if project.project_id == project_id]
        if any(project.is_marked for project in own_projects) or (self.deletes and not own_projects):
            return []
        return [Consent(ConsentKind.PROJECT, project_id)]

    @cached_property
    def wanted_buckets(self) -> dict[Consent, WantedBucket]:
        """The buckets that the stack creates, without buckets in its state."""
        if self.deletes:
            return {}  # tags protect the buckets of all versions
        own_buckets = {bucket.bucket for bucket in self.own_objects.buckets}
        buckets: dict[Consent, WantedBucket] = {}
        for storage in map(as_mapping, as_mapping(self.spec.get("storage")).values()):
            bucket = as_text(storage.get("bucket"))
            if bucket and creates_bucket(storage) and bucket not in own_buckets:
                consent = Consent(ConsentKind.BUCKET, bucket)
                buckets[consent] = WantedBucket(bucket, as_text(storage.get("endpoint")))
        return buckets

    def _has(self, consent: Consent, objects: StateObjects) -> bool:
        if self.environment is None:
            return False
        if wanted_bucket := self.wanted_buckets.get(consent):
            return any(self._is_same_bucket(wanted_bucket, bucket) for bucket in objects.buckets)
        candidates = [project for project in objects.projects if project.project_id == consent.name]
        return any(self._is_on_same_server(candidate) for candidate in candidates)

    def _is_on_same_server(self, candidate: StateProject) -> bool:
        """Return whether a project is on this stack's server: by the server's id where it is known, else by address."""
        from lakewright.project_files.servers import is_same_url  # noqa: PLC0415 - slow to load

        if candidate.server_id and self.server_id:
            return candidate.server_id == self.server_id
        return self.environment is not None and is_same_url(candidate.endpoint, self.environment.lakekeeper.endpoint)

    def _is_same_bucket(self, wanted_bucket: WantedBucket, bucket: StateBucket) -> bool:
        from lakewright.project_files.servers import is_same_store  # noqa: PLC0415 - slow to load

        aws = self.environment.aws.endpoint if self.environment else None
        return wanted_bucket.bucket == bucket.bucket and is_same_store(wanted_bucket.endpoint or aws, bucket.endpoint)

    @cached_property
    def environment(self) -> Environment | None:
        """The stack's environment; None if it cannot be read, so that the run will be refused anyway."""
        from lakewright.spec import SpecError  # noqa: PLC0415 - slow to load

        try:
            return self.access.load_environment(str(self.spec.get("environment")))
        except (SpecError, PlatformUnreadableError):
            return None

    @cached_property
    def server_id(self) -> str | None:
        """Id of the stack's Lakekeeper; None if the server does not respond."""
        from lakewright.cli.ownership.server_ids import find_server_id  # noqa: PLC0415 - slow to load

        if self.environment is None:
            return None
        return find_server_id(self.access, self.stack, self.environment.lakekeeper.reference)
