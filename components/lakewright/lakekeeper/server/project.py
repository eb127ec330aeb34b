"""Project: separates the warehouses and roles of a tenant from other tenants' objects."""

from collections.abc import Sequence
from typing import Annotated, Any

import pulumi
from pulumi.dynamic import Resource
from typing_extensions import override

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import (
    ForbiddenError,
    LakekeeperError,
    NotEmptyError,
    NotFoundError,
)
from lakewright.lakekeeper.api.management import limit_records, project_record, projects, warehouses
from lakewright.lakekeeper.provider.adoption import Adopting
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.creation import create_or_find
from lakewright.lakekeeper.provider.diagnostics import note
from lakewright.lakekeeper.provider.inputs import CreateOnly, Deletable, Replace, ServerKeeps, StateOnly, Update
from lakewright.lakekeeper.provider.options import ServerInput, delete_first, drop_none
from lakewright.lakekeeper.provider.resource_state import ObservedResource, RecordedResource
from lakewright.names.types import Deletion, ProjectId, ProjectName
from lakewright.ownership.mark import Claimant, Ownership, OwnershipMark
from lakewright.ownership.marked_object import MarkedObject
from lakewright.ownership.running_stack import find_running_stack


class ProjectArgs(Deletable):
    """Inputs of a project. The declaration sets its id, because names are not unique."""

    project_id: Annotated[ProjectId, Replace()]
    """Id of the project. The declaration sets it, because names are not unique."""
    name: Annotated[ProjectName, Update(via="rename")]
    """Display name."""
    kept_warehouses: Annotated[list[str] | None, StateOnly()] = None
    """Warehouses with `deletion: retain`. The project is kept while such a warehouse exists."""
    record: Annotated[str | None, Update(via="mark"), ServerKeeps()] = None
    """Id of the tenant's record, for the project's mark."""
    stack: Annotated[str | None, Update(via="mark"), ServerKeeps()] = None
    """The stack that owns the project, for its mark. Computed."""
    adopt: Annotated[bool, CreateOnly()] = False
    """Take over an existing project of this id."""

    @property
    def mark(self) -> OwnershipMark:
        """The mark that the project gets."""
        return OwnershipMark(self.stack, self.record)


class ProjectProvider(LakekeeperProvider[ProjectArgs]):
    """Creates, reads, renames and deletes projects."""

    args = ProjectArgs
    natural_key = ("project_id",)

    @override
    def complete_args(self, args: ProjectArgs, olds: dict[str, Any]) -> ProjectArgs:
        return args.model_copy(update={"stack": find_running_stack() or olds.get("stack")})

    @override
    def title(self, args: ProjectArgs) -> str:
        return f"project {args.project_id} at {args.server.endpoint}"

    @override
    def find_marked(self, client: Client, args: ProjectArgs) -> MarkedObject:
        return project_record.find_marked_project(client, args.project_id)

    @override
    def find_marked_for_deletion(self, client: Client, resource: RecordedResource[ProjectArgs]) -> list[MarkedObject]:
        """Return the project with the mark that it has now."""
        return [project_record.find_live_marked_project(client, resource.id)]

    @override
    def find_existing(self, client: Client, new: ProjectArgs) -> tuple[str, ObservedResource[ProjectArgs]] | None:
        name = projects.read_name(client, new.project_id)
        if name is None:
            return None
        mark = project_record.read_cached_mark(client, new.project_id)
        update = {"name": name, "stack": mark.stack, "record": mark.record}
        return new.project_id, ObservedResource(new.model_copy(update=update))

    @override
    def plan_adoption(self, live: ObservedResource[ProjectArgs], new: ProjectArgs) -> Adopting:
        """Return the changes of an adoption. The mark is not a setting; another stack in it is named as the owner."""
        mark, unmarked = live.declared.mark, {"stack": new.stack, "record": new.record}
        adopting = super().plan_adoption(ObservedResource(live.declared.model_copy(update=unmarked)), new)
        owner = [f"owner: {mark.stack} -> {new.stack}"] if mark.stack and mark.stack != new.stack else []
        return Adopting([*adopting.changes, *owner], adopting.problems)

    @override
    def contents(self, client: Client, object_id: str, new: ProjectArgs) -> str:
        names = sorted(str(warehouse["name"]) for warehouse in warehouses.list_all(client, object_id))
        return f"with warehouses: {', '.join(names)}" if names else ""

    @override
    def make(self, client: Client, new: ProjectArgs) -> tuple[str, ObservedResource[ProjectArgs]]:
        def create() -> str:
            projects.create(client, new.project_id, new.name)
            return new.name

        name, origin = create_or_find(create, lambda: projects.read_name(client, new.project_id))
        differs = "" if name == new.name else f"named `{name}`; declared is `{new.name}`"
        live_args = new.model_copy(update={"name": name})
        self.require_ours(client, live_args, new, origin, differs, object_id=new.project_id)
        if differs:
            projects.rename(client, new.project_id, new.name)
        self._mark(client, new)
        return new.project_id, ObservedResource(new)

    @override
    def find(self, client: Client, resource: RecordedResource[ProjectArgs]) -> ObservedResource[ProjectArgs] | None:
        name = projects.get_cached(client, resource.id)
        if name is None:
            return None
        live_args = resource.declared.model_copy(update={"name": name})
        if live_args.mark.names_owner:
            mark = project_record.read_cached_mark(client, resource.id)
            is_consented = mark.compare(Claimant(live_args.stack, live_args.record)) is Ownership.CONSENTED
            if is_consented or not mark.names_owner:
                # Without a consent, the mark of another stack is not drift: `up` refuses instead of reverting it.
                live_args = live_args.model_copy(update={"stack": None, "record": None})
        return ObservedResource(live_args)

    @override
    def change(
        self, client: Client, resource: RecordedResource[ProjectArgs], new: ProjectArgs
    ) -> ObservedResource[ProjectArgs]:
        if new.name != resource.declared.name:
            projects.rename(client, resource.id, new.name)
        self._mark(client, new)
        return ObservedResource(new)

    @override
    def remove(self, client: Client, resource: RecordedResource[ProjectArgs]) -> None:
        if resource.declared.deletion == "retain":
            return
        retained = resource.declared.kept_warehouses or []
        retention_note = (
            f"{self.title(resource.declared)} is kept: `deletion: retain` keeps its warehouse {', '.join(retained)}"
        )
        try:
            if _has_any(client, resource.id, retained):
                note(retention_note)
                return
            self._delete(client, resource.id)
        except NotFoundError:
            pass
        except NotEmptyError as refused:
            if (unlisted := client.server().unlisted) and retained:
                note(retention_note)
                return
            if unlisted:
                refused.add(f"Its contents may not be listed, since {unlisted}.")
            raise
        except ForbiddenError:
            if projects.read_name(client, resource.id) is not None:
                raise

    @staticmethod
    def _mark(client: Client, new: ProjectArgs) -> None:
        if new.mark.names_owner:
            project_record.write_mark(client, new.project_id, new.mark)

    @staticmethod
    def _delete(client: Client, project_id: str) -> None:
        """Delete a project and its record roles, which the server counts as content. Keep its mark if that fails."""
        mark = project_record.read_mark(client, project_id)
        limit_records.delete_all_marks(client, project_id)
        project_record.delete_mark(client, project_id)
        try:
            projects.delete(client, project_id)
        except BaseException as failed:
            if mark != OwnershipMark():
                _restore_mark(client, project_id, mark, failed)
            raise


def _restore_mark(client: Client, project_id: str, mark: OwnershipMark, failed: BaseException) -> None:
    """Write the mark of a project again after a failed deletion, which may have taken effect nevertheless."""
    try:
        if projects.read_name(client, project_id) is not None:
            project_record.write_mark(client, project_id, mark)
    except LakekeeperError as unmarked:
        if isinstance(failed, LakekeeperError):
            failed.add(f"The mark of its owner {mark.stack} may be missing now: {unmarked}")


def _has_any(client: Client, project_id: str, names: list[str]) -> bool:
    """Return whether a warehouse of the project has one of the names."""
    if not names:
        return False
    folded_names = {name.casefold() for name in names}
    return any(
        str(warehouse["name"]).casefold() in folded_names for warehouse in warehouses.list_all(client, project_id)
    )


class Project(Resource, module="lakekeeper", name="Project"):
    """A Lakekeeper project with a declared id. It is renamed in place."""

    project_id: pulumi.Output[str]
    name: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        server: ServerInput,
        project_id: pulumi.Input[str],
        name: pulumi.Input[str],
        deletion: pulumi.Input[Deletion] | None = None,
        kept_warehouses: pulumi.Input[Sequence[str]] | None = None,
        record: pulumi.Input[str] | None = None,
        adopt: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource.

        Args:
            resource_name: Name of the resource in the program, unique for its type.
            server: `endpoint` and `auth` of the server; secrets by reference.
            project_id: Id of the project. The declaration sets it, because names are not unique.
            name: Display name.
            deletion: Effect on data when the resource is deleted: `protect` refuses while there is data, `retain` keeps
                it, `purge` deletes it.
            kept_warehouses: Warehouses with `deletion: retain`. The project is kept while such a warehouse exists.
            record: Id of the tenant's record, for the project's mark.
            adopt: Take over an existing project of this id.
            opts: Options of the resource.
        """
        props = drop_none(
            server=server,
            project_id=project_id,
            name=name,
            deletion=deletion,
            kept_warehouses=kept_warehouses,
            record=record,
            adopt=adopt or None,
        )
        super().__init__(ProjectProvider(), resource_name, props, delete_first(opts))
