"""A kind of AWS resource: its properties, and its create, read, update and delete."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from lakewright_sandbox.providers.aws.resources.connection import AwsConnection
from lakewright_sandbox.providers.aws.resources.policies import canonical
from lakewright_sandbox.providers.protocol.difference import Change, compare
from lakewright_sandbox.providers.protocol.properties import UNKNOWN, Properties
from lakewright_sandbox.typed.json_values import is_array, is_object


def prune(value: Any) -> Any:
    """Return a value without empty parts: AWS returns absent, empty, zero and false alike."""
    if is_object(value):
        pruned_items = {key: prune(item) for key, item in value.items()}
        return {key: item for key, item in pruned_items.items() if item not in (None, "", 0, [], {})}
    if is_array(value):
        return [prune(item) for item in value]
    return value


@dataclass(frozen=True)
class ResourceProperty:
    """A property that a program may declare.

    `default` is AWS's value if nothing is declared; with `computed`, an undeclared property never differs. `form`
    converts declared and live values to comparable values. List items with an `identity` are matched by that key, in
    any order.
    """

    replaces: bool = False
    required: bool = False
    default: Any = None
    computed: bool = False
    form: Callable[[Any], Any] = prune
    identity: str | None = None

    def equal(self, live: Any, new_value: Any) -> bool:
        """Return whether AWS takes two values as equal."""
        return not self.changes("", live, new_value)

    def changes(self, name: str, live: Any, new_value: Any) -> dict[str, Change]:
        """Return the changes from the live value to the wanted one, by path below `name`."""
        live_form, wanted_form = self.form(live), self.form(new_value)
        if self.form is canonical:
            return {} if live_form == wanted_form else {name: "update"}
        if bool(live_form) != bool(wanted_form) and not isinstance(live, bool):
            return {name: "add" if wanted_form else "delete"}
        if self.identity and is_array(live_form) and is_array(wanted_form):
            return _compare_by_identity(name, self.identity, live_form, wanted_form)
        return compare(live_form, wanted_form, name)


def _compare_by_identity(name: str, identity: str, live: list[Any], new_items: list[Any]) -> dict[str, Change]:
    old_items = {str(item.get(identity)): item for item in live}
    changes: dict[str, Change] = {}
    for index, item in enumerate(new_items):
        path = f"{name}[{index}]"
        old_item = old_items.pop(str(item.get(identity)), None)
        changes |= {path: "add"} if old_item is None else compare(old_item, item, path)
    for index in range(len(old_items)):
        changes[f"{name}[{len(new_items) + index}]"] = "delete"
    return changes


REGION = ResourceProperty(replaces=True, computed=True)
POLICY = ResourceProperty(required=True, form=canonical)


class ResourceKind:
    """One kind of resource. Ids and outputs equal the real provider's."""

    token: ClassVar[str]
    title: ClassVar[str]
    properties: ClassVar[dict[str, ResourceProperty]]
    computed_outputs: ClassVar[tuple[str, ...]] = ()

    @property
    def service(self) -> str:
        """Return the AWS service that is called for it."""
        return self.token.split(":")[1].split("/")[0]

    def find_id(self, inputs: Properties) -> str:
        """Return the id of the object with these inputs, empty if AWS chooses it."""
        raise NotImplementedError

    def create(self, aws: AwsConnection, inputs: Properties) -> str | None:
        """Create the object, or nothing if AWS refuses. Return the id if AWS chooses it."""
        raise NotImplementedError

    def read(self, aws: AwsConnection, resource_id: str, olds: Properties) -> Properties | None:
        """Return the live object, None if it does not exist; `olds` has what AWS does not store."""
        raise NotImplementedError

    def update(self, aws: AwsConnection, resource_id: str, olds: Properties, news: Properties) -> None:
        """Update the object to new inputs."""
        raise NotImplementedError

    def delete(self, aws: AwsConnection, resource_id: str, olds: Properties) -> None:
        """Delete the object if it exists."""
        raise NotImplementedError

    def problems(self, inputs: Properties) -> dict[str, str]:
        """Return reasons by property for invalid inputs, beyond names and presence."""
        return {
            name: f"{name} is not a JSON document; set it to a policy document"
            for name, definition in self.properties.items()
            if definition.form is canonical
            and inputs.get(name) not in (None, UNKNOWN)
            and not is_object(canonical(inputs[name]))
        }


def tags_to_aws(tags: Properties | None) -> list[dict[str, str]]:
    """Return tags in AWS's format."""
    return [{"Key": key, "Value": str(value)} for key, value in sorted((tags or {}).items())]


def tags_from_aws(tags: list[dict[str, str]]) -> dict[str, str]:
    """Return tags as a program declares them."""
    return {tag["Key"]: tag["Value"] for tag in tags}


def list_removed_tags(olds: Properties, news: Properties) -> list[str]:
    """Return the names of tags in old properties that new properties lack."""
    old: Properties = olds.get("tags") or {}
    new: Properties = news.get("tags") or {}
    return sorted(old.keys() - new.keys())


def timestamp(moment: datetime.datetime) -> str:
    """Return a time in the real provider's format: RFC 3339 in UTC, whole seconds."""
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
