"""What a kind of AWS resource is to this provider: its properties, and how the four calls on it are made."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from lakewright_sandbox.providers.aws.resources.connection import AwsConnection
from lakewright_sandbox.providers.aws.resources.policies import canonical
from lakewright_sandbox.providers.protocol.difference import Change, compare
from lakewright_sandbox.providers.protocol.properties import UNKNOWN, Properties


def pruned(value: Any) -> Any:
    """The value without what says nothing: AWS answers absent, empty, zero and false alike."""
    if isinstance(value, dict):
        kept = {key: pruned(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in (None, "", 0, [], {})}
    if isinstance(value, list):
        return [pruned(item) for item in value]
    return value


@dataclass(frozen=True)
class ResourceProperty:
    """A property that a program may declare.

    `default` is what AWS has where nothing is declared; with `computed`, nothing declared is never a difference.
    `form` brings declared and live values to what can be compared; items of a list with an `identity` are told apart
    by that key, and their order means nothing.
    """

    replaces: bool = False
    required: bool = False
    default: Any = None
    computed: bool = False
    form: Callable[[Any], Any] = pruned
    identity: str | None = None

    def equal(self, one: Any, other: Any) -> bool:
        """Whether AWS takes the two as the same."""
        return not self.changes("", one, other)

    def changes(self, name: str, live: Any, wanted: Any) -> dict[str, Change]:
        """What changes from the live value to the wanted one, by path under `name`."""
        one, other = self.form(live), self.form(wanted)
        if self.form is canonical:
            return {} if one == other else {name: "update"}
        if bool(one) != bool(other) and not isinstance(live, bool):
            return {name: "add" if other else "delete"}
        if self.identity and isinstance(one, list) and isinstance(other, list):
            return _by_identity(name, self.identity, one, other)
        return compare(one, other, name)


def _by_identity(name: str, identity: str, live: list[Any], wanted: list[Any]) -> dict[str, Change]:
    rest = {str(item.get(identity)): item for item in live}
    changes: dict[str, Change] = {}
    for index, item in enumerate(wanted):
        path = f"{name}[{index}]"
        found = rest.pop(str(item.get(identity)), None)
        changes |= {path: "add"} if found is None else compare(found, item, path)
    for index in range(len(rest)):
        changes[f"{name}[{len(wanted) + index}]"] = "delete"
    return changes


REGION = ResourceProperty(replaces=True, computed=True)
POLICY = ResourceProperty(required=True, form=canonical)


class ResourceKind:
    """One kind of resource. Ids and outputs are those of the real provider."""

    token: ClassVar[str]
    title: ClassVar[str]
    properties: ClassVar[dict[str, ResourceProperty]]
    computed_outputs: ClassVar[tuple[str, ...]] = ()

    @property
    def service(self) -> str:
        """The AWS service that is called for it."""
        return self.token.split(":")[1].split("/")[0]

    def id_of(self, inputs: Properties) -> str:
        """The id that the object with these inputs has; empty where AWS chooses it."""
        raise NotImplementedError

    def create(self, aws: AwsConnection, inputs: Properties) -> str | None:
        """Make the object; where AWS refuses, nothing stays behind. The id, where AWS chooses it."""
        raise NotImplementedError

    def read(self, aws: AwsConnection, resource_id: str, olds: Properties) -> Properties | None:
        """The object as it is, or None where it is gone. `olds` tells what AWS does not keep."""
        raise NotImplementedError

    def update(self, aws: AwsConnection, resource_id: str, olds: Properties, news: Properties) -> None:
        """Make the object as the new inputs say."""
        raise NotImplementedError

    def delete(self, aws: AwsConnection, resource_id: str, olds: Properties) -> None:
        """Delete the object; one that is gone already is deleted."""
        raise NotImplementedError

    def problems(self, inputs: Properties) -> dict[str, str]:
        """What is wrong with inputs beyond names and presence: reasons by property."""
        return {
            name: f"{name} is no JSON document; give a policy document"
            for name, declared in self.properties.items()
            if declared.form is canonical
            and inputs.get(name) not in (None, UNKNOWN)
            and not isinstance(canonical(inputs[name]), dict)
        }


def tags_to_aws(tags: Properties | None) -> list[dict[str, str]]:
    """Tags as AWS takes them."""
    return [{"Key": key, "Value": str(value)} for key, value in sorted((tags or {}).items())]


def tags_from_aws(tags: list[dict[str, str]]) -> dict[str, str]:
    """Tags as a program declares them."""
    return {tag["Key"]: tag["Value"] for tag in tags}


def timestamp(moment: datetime.datetime) -> str:
    """A moment as the real provider writes it: RFC 3339 in UTC, whole seconds."""
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
