"""TaskQueueConfig: settings of a task queue of a warehouse, or of the log cleanup of a project."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Self

import pulumi
from pulumi.dynamic import CheckFailure, CheckResult, Resource
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError, ValidationInfo, model_validator
from typing_extensions import override

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import LakekeeperError
from lakewright.lakekeeper.api.connection.versions import find_current_queue
from lakewright.lakekeeper.api.management import project_record, task_queues, warehouses
from lakewright.lakekeeper.api.management.task_queues import LOG_CLEANUP, SOFT_DELETION, QueueConfig, Scope
from lakewright.lakekeeper.provider import diff as difference
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.creation import Origin
from lakewright.lakekeeper.provider.diagnostics import note, warn
from lakewright.lakekeeper.provider.errors import DeletedOutsideStackError
from lakewright.lakekeeper.provider.inputs import CreateOnly, Replace, ResourceInputs, ServerKeeps, Update, has_unknown
from lakewright.lakekeeper.provider.options import ServerInput, drop_none, not_imported
from lakewright.lakekeeper.provider.resource_state import ObservedResource, RecordedResource
from lakewright.lakekeeper.warehouse.changes import awake
from lakewright.names.types import RECORDED, NotBlank, ProjectId
from lakewright.ownership.marked_object import MarkedObject

_DURATION = TypeAdapter(timedelta)
_EVERYWHERE = frozenset({SOFT_DELETION, "tabular_purge", LOG_CLEANUP})
"""Queues of every server. Other queues exist only in some editions of the server."""


class TaskQueueConfigArgs(ResourceInputs):
    """Inputs of a queue. `config` has the keys of the server's documentation."""

    warehouse_id: Annotated[NotBlank | None, Replace()] = None
    """Warehouse that the queue belongs to."""
    project_id: Annotated[ProjectId | None, Replace()] = None
    """Project that the queue belongs to; for `task_log_cleanup` only."""
    queue: Annotated[NotBlank, AfterValidator(find_current_queue), Replace()]
    """Name of the queue: `soft_deletion`, `tabular_purge`, `task_log_cleanup`, or another queue of the server."""
    config: Annotated[dict[str, Any], Update(via="config")] = {}
    """Settings of the queue, with the server's keys."""
    max_seconds_since_last_heartbeat: Annotated[
        Annotated[int, Field(ge=1)] | None, Update(via="config"), ServerKeeps()
    ] = None
    """Seconds without a heartbeat after which a task counts as lost. If omitted, the server keeps its value."""
    adopt: Annotated[bool, CreateOnly()] = False
    """Take over a configuration that was set outside the stack."""

    @model_validator(mode="after")
    def _belongs_to_one(self) -> Self:
        if has_unknown([self.queue]):
            return self
        if self.queue == LOG_CLEANUP and (self.project_id is None or self.warehouse_id is not None):
            raise ValueError(f"the queue `{LOG_CLEANUP}` belongs to a project: it takes `project_id` alone")
        if self.queue != LOG_CLEANUP and (self.warehouse_id is None or self.project_id is not None):
            raise ValueError(f"the queue `{self.queue}` belongs to a warehouse: it takes `warehouse_id` alone")
        return self

    @model_validator(mode="after")
    def _has_readable_periods(self, info: ValidationInfo) -> Self:
        if info.context == RECORDED or has_unknown([self.queue, self.config]) or self.queue != LOG_CLEANUP:
            return self
        for key in task_queues.LOG_CLEANUP_PERIODS:
            value = self.config.get(key)
            if value is not None and not task_queues.is_period(value):
                raise ValueError(
                    f"`config.{key}` must be an ISO 8601 duration without years and months, such as `P30D` or `PT12H`"
                )
        return self

    @property
    def scope(self) -> Scope:
        """Warehouse or project that the queue belongs to."""
        return Scope(self.warehouse_id, self.project_id)

    @property
    def wanted(self) -> QueueConfig:
        """Configuration to send."""
        return QueueConfig(self.config, self.max_seconds_since_last_heartbeat)


class TaskQueueConfigProvider(LakekeeperProvider[TaskQueueConfigArgs]):
    """Sets and reads a configuration. The server cannot unset a configuration, so deleting leaves it unchanged."""

    args = TaskQueueConfigArgs
    natural_key = ("warehouse_id", "project_id", "queue")
    belongs_to_maker = False
    may_be_on_foreign_objects = True

    @override
    def find_marked(self, client: Client, args: TaskQueueConfigArgs) -> MarkedObject | None:
        if args.warehouse_id:
            return project_record.find_marked_warehouse(client, args.warehouse_id)
        return project_record.find_marked_project(client, args.project_id) if args.project_id else None

    @override
    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Check that the server has the queue before any resource is created."""
        result = super().check(_olds, news)
        if result.failures or "server" in _olds:
            return result
        args = self.args.from_state(result.inputs)
        if has_unknown([args.queue, args.server]) or args.queue in _EVERYWHERE:
            return result
        try:
            queues = self.client(args.server).server().queues
        except (LakekeeperError, UnresolvedCredentialError) as error:
            warn(f"{self.title(args)}: could not check whether the server has the queue: {error}")
            return result
        if args.queue in queues:
            return result
        reason = f"the server at {args.server.endpoint} has no queue `{args.queue}`; it has {', '.join(queues)}"
        return CheckResult(news, [CheckFailure("queue", reason)])

    @override
    def title(self, args: TaskQueueConfigArgs) -> str:
        return f"configuration of queue `{args.queue}` of {args.scope} at {args.server.endpoint}"

    @override
    def find_existing(
        self, client: Client, new: TaskQueueConfigArgs
    ) -> tuple[str, ObservedResource[TaskQueueConfigArgs]] | None:
        live_config = task_queues.get(client, new.scope, new.queue)
        return (
            (_make_id(new), ObservedResource(_observe(live_config, new)))
            if live_config and live_config.is_set
            else None
        )

    @override
    def make(self, client: Client, new: TaskQueueConfigArgs) -> tuple[str, ObservedResource[TaskQueueConfigArgs]]:
        if not new.adopt and (live_args := self._find_existing_awake(client, new)) is not None:
            differs = difference.list_changes(live_args, new)
            if differs:
                listed_changes = "; ".join(map(str, differs))
                self.require_ours(client, live_args, new, Origin.EXISTED, f"with other settings ({listed_changes})")
        return _make_id(new), self._set(client, new)

    @override
    def find(
        self, client: Client, resource: RecordedResource[TaskQueueConfigArgs]
    ) -> ObservedResource[TaskQueueConfigArgs] | None:
        state = resource.declared
        live_config = task_queues.get(client, state.scope, state.queue)
        if live_config is not None:
            return ObservedResource(_observe(live_config, state))
        if state.warehouse_id and warehouses.get(client, state.warehouse_id):
            warn(f"{self.title(state)} cannot be seen while the warehouse is inactive")
            return ObservedResource(state, hidden_in=state.warehouse_id)
        return None

    @override
    def change(
        self, client: Client, resource: RecordedResource[TaskQueueConfigArgs], new: TaskQueueConfigArgs
    ) -> ObservedResource[TaskQueueConfigArgs]:
        return self._set(client, new)

    @override
    def remove(self, client: Client, resource: RecordedResource[TaskQueueConfigArgs]) -> None:
        state = resource.declared
        note(f"{self.title(state)} is left unchanged: the server cannot unset it")

    def _find_existing_awake(self, client: Client, new: TaskQueueConfigArgs) -> TaskQueueConfigArgs | None:
        with awake(client, new.warehouse_id):
            existing = self.find_existing(client, new)
        return existing[1].declared if existing else None

    def _set(self, client: Client, new: TaskQueueConfigArgs) -> ObservedResource[TaskQueueConfigArgs]:
        with awake(client, new.warehouse_id):
            if not task_queues.put(client, new.scope, new.queue, new.wanted):
                raise DeletedOutsideStackError(f"{self.title(new)} cannot be set: {new.scope} does not exist.")
        return ObservedResource(new)


def _make_id(args: TaskQueueConfigArgs) -> str:
    return f"{args.warehouse_id or args.project_id}/{args.queue}"


def _observe(live_config: QueueConfig, args: TaskQueueConfigArgs) -> TaskQueueConfigArgs:
    """Return a response as inputs. A duration keeps its declared spelling if the values are equal."""
    config = {
        key: args.config[key] if _same(value, args.config.get(key)) else value
        for key, value in live_config.config.items()
    }
    heartbeat = live_config.max_seconds_since_last_heartbeat
    declared_heartbeat = heartbeat if args.max_seconds_since_last_heartbeat is not None else None
    return args.model_copy(update={"config": config, "max_seconds_since_last_heartbeat": declared_heartbeat})


def _same(live_value: Any, args: Any) -> bool:
    if live_value == args:
        return True
    try:
        return _DURATION.validate_python(live_value) == _DURATION.validate_python(args)
    except ValidationError:
        return False


class TaskQueueConfig(Resource, module="lakekeeper", name="TaskQueueConfig"):
    """Settings of a task queue: `soft_deletion` or `tabular_purge` of a warehouse, `task_log_cleanup` of a project.

    A queue always exists. `adopt=True` takes over settings that were made outside the stack.
    `max_seconds_since_last_heartbeat` is the number of seconds without a heartbeat after which a task counts as lost.
    """

    queue: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        server: ServerInput,
        queue: pulumi.Input[str],
        warehouse_id: pulumi.Input[str] | None = None,
        project_id: pulumi.Input[str] | None = None,
        config: pulumi.Input[Mapping[str, Any]] | None = None,
        max_seconds_since_last_heartbeat: pulumi.Input[int] | None = None,
        adopt: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource.

        Args:
            resource_name: Name of the resource in the program, unique for its type.
            server: `endpoint` and `auth` of the server; secrets by reference.
            queue: Name of the queue: `soft_deletion`, `tabular_purge`, `task_log_cleanup`, or another queue of the
                server.
            warehouse_id: Warehouse that the queue belongs to.
            project_id: Project that the queue belongs to; for `task_log_cleanup` only.
            config: Settings of the queue, with the server's keys.
            max_seconds_since_last_heartbeat: Seconds without a heartbeat after which a task counts as lost. If omitted,
                the server keeps its value.
            adopt: Take over a configuration that was set outside the stack.
            opts: Options of the resource.
        """
        props = drop_none(
            server=server,
            queue=queue,
            warehouse_id=warehouse_id,
            project_id=project_id,
            config=config,
            max_seconds_since_last_heartbeat=max_seconds_since_last_heartbeat,
            adopt=adopt or None,
        )
        super().__init__(TaskQueueConfigProvider(), resource_name, props, not_imported(opts))
