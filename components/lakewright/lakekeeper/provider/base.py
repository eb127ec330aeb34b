"""Base class of all resource providers: check, diff, create, read, update and delete."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic

from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    ConfigureRequest,
    CreateResult,
    DiffResult,
    ReadResult,
    ResourceProvider,
    UpdateResult,
)
from pydantic import ValidationError

from lakewright.credentials import references as credentials
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import ForbiddenError, InsecureEndpointError, RefusedError
from lakewright.lakekeeper.api.connection.server import ServerRef, as_recorded, require_tls
from lakewright.lakekeeper.provider import adoption, errors, inactive_warehouses, run_context, server_identity
from lakewright.lakekeeper.provider import diff as difference
from lakewright.lakekeeper.provider.adoption import Adopting
from lakewright.lakekeeper.provider.creation import Origin
from lakewright.lakekeeper.provider.diff import Change
from lakewright.lakekeeper.provider.inputs import Replace, failures, has_unknown, require_supported
from lakewright.lakekeeper.provider.resource_state import D, ObservedResource, RecordedResource
from lakewright.lakekeeper.provider.run_context import RunContext
from lakewright.ownership import record_identity
from lakewright.ownership.mark import Claimant, Ownership
from lakewright.ownership.marked_object import MarkedObject
from lakewright.ownership.running_stack import find_running_stack


class LakekeeperProvider(ResourceProvider, Generic[D]):
    """Base of the providers.

    Instances have no data, because a provider is pickled into the state of each of its resources.
    """

    serialize_as_secret_always = False
    args: type[D]
    natural_key: tuple[str, ...] = ()
    """Properties that identify an existing object, for resources that support `adopt`."""
    seen_by: tuple[str, ...] = ()
    """Properties that must be known to compare an existing object with a declaration."""
    belongs_to_maker = True
    """Whether an existing object belongs to the stack that created it. Settings of an object have no owner."""
    may_be_on_foreign_objects = False
    """Whether stacks declare it on foreign objects too, such as grants. Then only a recorded owner is compared."""
    config: credentials.ConfigLookup = staticmethod(credentials.no_config)
    own_run: RunContext | None = None
    """Context of a stack, where one process reads many stacks. Never set in a program."""

    # Methods that a resource implements.

    @abstractmethod
    def make(self, client: Client, new: D) -> tuple[str, ObservedResource[D]]:
        """Create the object, or take over an existing object. Return its id and the object."""

    @abstractmethod
    def find(self, client: Client, resource: RecordedResource[D]) -> ObservedResource[D] | None:
        """Return the object as it is now, or None if it does not exist."""

    @abstractmethod
    def change(self, client: Client, resource: RecordedResource[D], new: D) -> ObservedResource[D]:
        """Update the object in place to match its declaration."""

    @abstractmethod
    def remove(self, client: Client, resource: RecordedResource[D]) -> None:
        """Delete the object. Succeed if it does not exist."""

    def replaces(self, change: Change, new: D, client: Callable[[], Client]) -> bool:  # noqa: ARG002 - for subclasses
        """Return whether a change needs a new object."""
        return isinstance(change.mark, Replace)

    def refuse_replacement(self, client: Client, resource: RecordedResource[D], new: D, changes: list[Change]) -> None:
        """Raise if the object must not be replaced. Called in previews too."""

    def needs_calls(self, resource: RecordedResource[D], new: D) -> bool:
        """Return whether an update changes more than the state. Drift that no property shows also needs calls."""
        return bool(resource.drift) or difference.needs_calls(difference.list_changes(resource.declared, new))

    def title(self, args: D) -> str:
        """Return the name of a declared object for messages: kind, natural key and server."""
        return f"{self.kind} at {args.server.endpoint}"

    def find_existing(self, client: Client, new: D) -> tuple[str, ObservedResource[D]] | None:  # noqa: ARG002 - for subclasses
        """Return the id and the object on the server that has a declaration's natural key, for `adopt`."""
        return None

    def contents(self, client: Client, object_id: str, new: D) -> str:  # noqa: ARG002 - for subclasses
        """Describe the contents of an existing object. Return an empty string if it is empty.

        An interrupted creation leaves an empty object, since its contents are created after it is in the state.
        """
        return ""

    def plan_adoption(self, live: ObservedResource[D], new: D) -> Adopting:
        """Return what adopting an existing object changes, and the reasons against it."""
        return adoption.plan_changes(live.declared, new)

    def find_marked(self, client: Client, args: D) -> MarkedObject | None:  # noqa: ARG002 - for subclasses
        """Return the object whose mark says who owns a declared object; None if no mark can.

        A project's mark covers everything in it.
        """
        return None

    def find_marked_in_state(self, client: Client, resource: RecordedResource[D]) -> MarkedObject | None:
        """Return the object whose mark says who owns an object in the state; None if no mark can."""
        return self.find_marked(client, resource.declared)

    def find_marked_for_deletion(self, client: Client, resource: RecordedResource[D]) -> list[MarkedObject]:
        """Return the objects whose marks are compared before an object in the state is deleted."""
        marked = self.find_marked_in_state(client, resource)
        return [marked] if marked else []

    # Pulumi's hooks.

    def configure(self, req: ConfigureRequest) -> None:
        """Store the stack's decrypted configuration. The engine calls this once in a provider's process."""
        self.config = req.config.get
        errors.show_sentences_only()

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Report all errors at once, or return the normalized properties."""
        try:
            args = self.args.parse(news)
        except ValidationError as error:
            return CheckResult(news, [CheckFailure(path, reason) for path, reason in failures(error, news)])
        if not has_unknown(args.server):
            try:
                require_tls(args.server)
            except InsecureEndpointError as insecure:
                return CheckResult(news, [CheckFailure("server", str(insecure))])
        checked = self.complete_args(args, _olds)
        adoption.note_adopt(self, checked, in_state="server" in _olds)
        if "server" not in _olds and (refused := adoption.find_adoption_conflict(self, checked)):
            return CheckResult(news, [CheckFailure("adopt", refused)])
        return CheckResult(checked.props(), [])

    def complete_args(self, args: D, olds: dict[str, Any]) -> D:  # noqa: ARG002 - for subclasses
        """Return a valid declaration with the properties that the provider adds."""
        return args

    def redeclare(self, recorded_args: D, live_args: D) -> D:  # noqa: ARG002 - for subclasses
        """Return the declaration of the last update as the same program would declare it now.

        Args:
            recorded_args: The declaration in the state.
            live_args: The object as it is now.
        """
        return recorded_args

    def is_ended(self, args: D) -> bool:  # noqa: ARG002 - for subclasses
        """Return whether an object of the state may be missing without drift, since its end has come."""
        return False

    def remove_ended(self, id_: str, outs: dict[str, Any]) -> list[str]:  # noqa: ARG002 - for subclasses
        """Remove from the server what has ended of an object in the state. Return the removed principals.

        Args:
            id_: Id of the object.
            outs: Its outputs in the state, which is not changed.

        Raises:
            NotOwnedError: The object belongs to another stack.
            LakekeeperError: The server refused a call or did not respond.
        """
        return []

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """Return the changes, and whether they need a new object. Raise if a change is not allowed."""
        old, new = self.args.from_state(_olds), self.args.from_state(_news)
        changes = difference.list_changes(old, new)
        self.run.own_objects.add(self.kind, _id)
        if old.server != new.server and not has_unknown(new.server):
            server_identity.verify(self.client(new.server), _olds, self.title(old))
        replaced = [c for c in changes if self.replaces(c, new, lambda: self._reach(old.server, new.server))]
        if decided := [c for c in replaced if c.known]:
            self.refuse_replacement(self._connect_verified(old, _olds), RecordedResource(_id, old, _olds), new, decided)
        return DiffResult(
            changes=bool(changes)
            or bool(RecordedResource(_id, old, _olds).drift)
            or server_identity.is_outdated(_olds)
            or record_identity.is_outdated(self.run.record_id, _olds)
            or inactive_warehouses.must_read(_olds, self.run.to_activate, lambda: self._reach(old.server, new.server)),
            replaces=[change.path for change in replaced],
            delete_before_replace=True,
        )

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Create or adopt the object."""
        new = self.args.from_state(props)
        client = self.client(new.server)
        identity_outputs = self._to_record(client, new)
        object_id, observed = self._create_object(client, new)
        return CreateResult(object_id, observed.outs() | identity_outputs)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Return the object as it is now, as properties of a declaration."""
        state = self.args.from_state(props)
        client = self._connect_verified(state, props)
        observed = self.find(client, RecordedResource(id_, state, props))
        if observed is None:
            self._require_proven(client, props, state)
            return ReadResult(None, {})
        identity_outputs = server_identity.to_record(client) | record_identity.to_record(None, props)
        return ReadResult(id_, observed.outs() | identity_outputs, observed.declared.props())

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        """Update the object in place. If only the state changes, request only the server's id."""
        old, new = self.args.from_state(_olds), self.args.from_state(_news)
        resource, client = RecordedResource(_id, old, _olds), self.client(new.server)
        server_identity.verify(client, _olds, self.title(old))
        if server_identity.is_outdated(_olds) and self.find(client, resource) is None:
            self._require_proven(client, _olds, old)
            raise errors.DeletedOutsideStackError(f"{self.title(old)} does not exist. Run `up --refresh`.")
        is_visible_again = inactive_warehouses.can_read(_olds, lambda: client)
        if is_visible_again or self.needs_calls(resource, new):
            self._refuse_foreign(
                lambda: [self.find_marked_in_state(client, resource)], MarkedObject.find_change_problem, _olds
            )
        identity_outputs = self._to_record(client, new, _olds)
        observed = (
            self._update_visible_again(client, resource, new) if is_visible_again else self._apply_update(resource, new)
        )
        return UpdateResult(observed.outs() | identity_outputs)

    def _apply_update(self, resource: RecordedResource[D], new: D) -> ObservedResource[D]:
        if self.needs_calls(resource, new):
            client = self.client(new.server)
            require_supported(client.server(), new)
            return self.change(client, resource, new)
        computed = {key: value for key, value in resource.outs.items() if key not in self.args.model_fields}
        return ObservedResource(new, _drop_engine_keys(computed))

    def _update_visible_again(self, client: Client, resource: RecordedResource[D], new: D) -> ObservedResource[D]:
        """Refresh an object that an earlier refresh could not see, and update it."""
        client.lists.forget()
        observed = self.find(client, resource)
        if observed is None:
            return self._create_object(client, new)[1]
        now = RecordedResource(resource.id, observed.declared, observed.outs())
        changes = difference.list_changes(now.declared, new)
        if replaced := [change for change in changes if self.replaces(change, new, lambda: client)]:
            self.refuse_replacement(client, now, new, replaced)
            self.remove(client, now)
            return self._create_object(client, new)[1]
        return self._apply_update(now, new)

    def _create_object(self, client: Client, new: D) -> tuple[str, ObservedResource[D]]:
        with adoption.confirm_absence(self, client, new):
            require_supported(client.server(), new)
            return self.make(client, new)

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """Delete the object according to the `deletion` in the state."""
        state = self.args.from_state(_props)
        client, resource = self._connect_verified(state, _props), RecordedResource(_id, state, _props)
        is_uncertain = getattr(state, "deletion", None) == "protect" and not server_identity.is_proven(client, _props)
        if is_uncertain and self.find(client, resource) is None:
            raise server_identity.make_unproven_error(client, self.title(state))
        try:
            self._refuse_foreign(
                lambda: self.find_marked_for_deletion(client, resource), MarkedObject.find_deletion_problem, _props
            )
        except ForbiddenError:
            # Nothing is deleted by `retain`, and of an object that does not exist, whose project is refused as well.
            if getattr(state, "deletion", None) != "retain" and self._may_exist(client, resource):
                raise
        self.remove(client, resource)

    # Methods that subclasses share.

    @property
    def run(self) -> RunContext:
        """Context of this run. It is looked up at each use, because instances are pickled into the state."""
        return self.own_run or run_context.current()

    @property
    def kind(self) -> str:
        """Name of the resource class."""
        return type(self).__name__.removesuffix("Provider")

    @property
    def claimant(self) -> Claimant:
        """The running stack, as far as it is known."""
        return Claimant(find_running_stack(), self.run.record_id)

    def _refuse_foreign(
        self,
        find_marked: Callable[[], Sequence[MarkedObject | None]],
        find_problem: Callable[[MarkedObject, Claimant], str | None],
        outs: dict[str, Any],
    ) -> None:
        """Raise NotOwnedError if the mark of an object in the state names another stack."""
        recorded_id = record_identity.find_recorded(outs)
        if self.may_be_on_foreign_objects and not recorded_id:
            return
        claimant = Claimant(find_running_stack(), self.run.record_id or recorded_id)
        if claimant == Claimant():
            return  # nothing to compare
        for marked in find_marked():
            if marked and (problem := find_problem(marked, claimant)):
                raise errors.NotOwnedError(problem)

    def _may_exist(self, client: Client, resource: RecordedResource[D]) -> bool:
        client.lists.forget()
        try:
            return self.find(client, resource) is not None
        except RefusedError:
            return True

    def _to_record(self, client: Client, new: D, outs: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the outputs that identify the server, and the tenant's record whose mark the object has."""
        identity_outputs = record_identity.to_record(self.run.record_id, outs)
        is_new = identity_outputs != record_identity.to_record(None, outs)
        if is_new and self.may_be_on_foreign_objects and self._is_foreign(client, new):
            identity_outputs = {}
        return server_identity.to_record(client) | identity_outputs

    def _is_foreign(self, client: Client, new: D) -> bool:
        """Return whether the mark of an object names another stack, or may not be read."""
        try:
            marked = self.find_marked(client, new)
        except ForbiddenError:
            return True
        return marked is not None and marked.mark.compare(self.claimant) is Ownership.FOREIGN

    def require_ours(
        self, client: Client, live_args: D, new: D, origin: Origin, differs: str = "", *, object_id: str | None = None
    ) -> None:
        """Raise NotOwnedError for an object that this stack did not create and may not adopt.

        Args:
            client: Client of the server.
            live_args: The existing object.
            new: The declaration.
            origin: Origin of the object, according to the create call.
            differs: Differences between the object and the object that an interrupted creation of `new` leaves.
            object_id: Id of an object that may contain other objects.
        """
        if origin is Origin.CREATED:
            return
        was_absent = adoption.was_absent(self, new)
        is_this_runs = origin is Origin.UNCONFIRMED and was_absent
        may_be_this_runs = origin is Origin.EXISTED and was_absent and not differs
        if not differs and (is_this_runs or adoption.is_begun(self, new)):
            differs = "" if object_id is None else self.contents(client, object_id, new)
            if not differs:
                client.lists.forget_run()  # another stack may have marked it since the check
                if owned := adoption.find_other_owner(self, client, new):
                    raise errors.NotOwnedError(owned)
                return
        if getattr(new, "adopt", False):
            if refused := adoption.find_missing_consent(self, client, new):
                raise errors.NotOwnedError(refused)
            if not (fixed := adoption.find_fixed_changes(self, client, live_args, new)):
                return
            raise errors.NotOwnedError(
                f"{self.title(new)} exists already. The server cannot change {', '.join(c.path for c in fixed)}."
                " Declare the existing values to take it over."
            )
        title = self.title(new)
        raise errors.NotOwnedError(
            adoption.format_appearance(title) if may_be_this_runs else adoption.refusal(title, differs)
        )

    def client(self, server: ServerRef) -> Client:
        """Return the client of this process for a server whose version is supported."""
        return self.run.client(server, self.secret)

    def connect_as_recorded(self, server: ServerRef) -> Client:
        """Return the client of this process for a server as recorded in the state."""
        return self.client(as_recorded(server))

    def secret(self, reference: str) -> str:
        """Return the secret of a reference.

        Raises:
            UnresolvedCredentialError: The reference cannot be resolved.
        """
        return credentials.resolve(reference, self.config)

    def _connect_verified(self, state: D, outs: dict[str, Any]) -> Client:
        """Return the client for an object in the state. Raises errors.MovedServerError."""
        client = self.connect_as_recorded(state.server)
        server_identity.verify(client, outs, self.title(state))
        return client

    def _require_proven(self, client: Client, outs: dict[str, Any], state: D) -> None:
        """Raise MovedServerError if an object may be missing because the endpoint is a different server."""
        if not server_identity.is_proven(client, outs):
            raise server_identity.make_unproven_error(client, self.title(state))

    def _reach(self, old: ServerRef, new: ServerRef) -> Client:
        return self.connect_as_recorded(old) if has_unknown(new) else self.client(new)


def _drop_engine_keys(props: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in props.items() if not key.startswith("__")}
