"""A configured `aws` provider: check, diff and bookkeeping are the same for every kind of resource."""
# ruff: noqa: ARG002  Every kind and every instance gets the same parameters.

from __future__ import annotations

from dataclasses import dataclass

from lakewright_sandbox.providers.aws.functions import FUNCTIONS
from lakewright_sandbox.providers.aws.resources.bucket import S3Bucket
from lakewright_sandbox.providers.aws.resources.bucket_lifecycle import BucketLifecycle
from lakewright_sandbox.providers.aws.resources.bucket_settings import (
    BucketEncryption,
    BucketLogging,
    BucketOwnershipControls,
    BucketPolicy,
    BucketPublicAccessBlock,
    BucketVersioning,
)
from lakewright_sandbox.providers.aws.resources.calls import describe_errors, mark_after_create, mark_create
from lakewright_sandbox.providers.aws.resources.connection import AwsConnection
from lakewright_sandbox.providers.aws.resources.key import KmsAlias, KmsKey
from lakewright_sandbox.providers.aws.resources.kind import ResourceKind
from lakewright_sandbox.providers.aws.resources.role import IamRole, IamRolePolicy, IamRolePolicyAttachment
from lakewright_sandbox.providers.protocol.difference import Change, ResourceDifference
from lakewright_sandbox.providers.protocol.errors import SandboxProviderError, UnsupportedError
from lakewright_sandbox.providers.protocol.properties import (
    UNKNOWN,
    Properties,
    contains_unknown,
    drop_internal,
    mark_secrets,
)
from lakewright_sandbox.providers.protocol.servicer import LiveResource, PropertyFailure, ResourceRef

KINDS: dict[str, ResourceKind] = {
    kind.token: kind
    for kind in (
        KmsAlias(),
        S3Bucket(),
        BucketEncryption(),
        BucketLifecycle(),
        BucketLogging(),
        BucketOwnershipControls(),
        BucketPolicy(),
        BucketPublicAccessBlock(),
        BucketVersioning(),
        KmsKey(),
        IamRole(),
        IamRolePolicy(),
        IamRolePolicyAttachment(),
    )
}


@dataclass(frozen=True)
class Account:
    """Resources in one sandbox; `connection` is None in a preview that does not know the endpoint yet."""

    connection: AwsConnection | None
    plain_text_warning: str | None = None

    def check(
        self,
        resource: ResourceRef,
        olds: Properties,
        news: Properties,
        seed: bytes,
    ) -> tuple[Properties, list[PropertyFailure]]:
        """Refuse properties that this provider does not manage, and missing required properties."""
        kind, inputs = _kind(resource), drop_internal(news)
        failures = [
            PropertyFailure(name, f"the sandbox's aws provider has no `{name}` for {resource.type}; {_INSTALL}")
            for name in sorted(inputs.keys() - kind.properties.keys())
        ]
        failures += [
            PropertyFailure(
                name,
                f"{resource.type} needs `{name}`: the sandbox's aws provider chooses no names and no defaults for it",
            )
            for name, definition in kind.properties.items()
            if definition.required and inputs.get(name) in (None, "")
        ]
        if not failures and not contains_unknown(inputs):
            failures = [PropertyFailure(name, reason) for name, reason in sorted(kind.problems(inputs).items())]
        return inputs, failures

    def diff(
        self, resource: ResourceRef, olds: Properties, news: Properties, old_inputs: Properties
    ) -> ResourceDifference:
        """Compare the state with the declared inputs, property by property, as AWS would."""
        kind = _kind(resource)
        changes: dict[str, Change] = {}
        replaces: set[str] = set()
        for name, definition in kind.properties.items():
            new_value, live = news.get(name, definition.default), olds.get(name, definition.default)
            if (new_value is None and definition.computed) or definition.equal(live, new_value):
                continue
            changed_paths = definition.changes(name, live, new_value)
            changes |= changed_paths
            replaces |= changed_paths.keys() if definition.replaces else set()
        # Every object has an explicit name, so the old object must be deleted before the new object is created.
        same_object = contains_unknown(news) or kind.find_id(news) == resource.id
        return ResourceDifference(changes, frozenset(replaces), bool(replaces) and same_object)

    def preview_create(self, resource: ResourceRef, inputs: Properties) -> Properties:
        """Return the inputs, and the properties that AWS will choose as unknown."""
        return dict.fromkeys(_kind(resource).computed_outputs, UNKNOWN) | inputs

    def create(self, resource: ResourceRef, inputs: Properties) -> tuple[str, Properties]:
        """Create the object and read it back. Raises MaybeCreatedError if it may exist although that failed."""
        kind, aws = _kind(resource), self._connection()
        resource_id = kind.find_id(inputs)
        with mark_create(f"creating the {kind.title} {resource_id}".rstrip(), aws.get_endpoint(kind.service)):
            resource_id = kind.create(aws, inputs) or resource_id
        with mark_after_create(f"reading the {kind.title} {resource_id} back", aws.get_endpoint(kind.service)):
            return resource_id, self._state(kind, resource_id, inputs)

    def read(self, resource: ResourceRef, olds: Properties, old_inputs: Properties) -> LiveResource | None:
        """Return the live object; without an id, the object that the inputs name."""
        kind, aws = _kind(resource), self._connection()
        sought = resource.id or kind.find_id(old_inputs)
        old_values = drop_internal(old_inputs) | drop_internal(olds)
        with describe_errors(f"reading the {kind.title} {sought}", aws.get_endpoint(kind.service)):
            live = kind.read(aws, sought, old_values)
        if live is None:
            return None
        outputs = _keep_known_spellings(kind, live, old_values)
        return LiveResource(sought, outputs, _to_inputs(kind, outputs, drop_internal(old_inputs)))

    def preview_update(self, resource: ResourceRef, olds: Properties, news: Properties) -> Properties:
        """Return the state with the new inputs."""
        state = drop_internal(olds) | news
        if "tagsAll" in state:
            state["tagsAll"] = news.get("tags") or {}
        return {key: value for key, value in state.items() if key in news or key not in _kind(resource).properties} | {
            key: olds[key]
            for key, definition in _kind(resource).properties.items()
            if key not in news and key in olds and definition.computed
        }

    def update(self, resource: ResourceRef, olds: Properties, news: Properties) -> Properties:
        """Update the object and read it back."""
        kind, aws = _kind(resource), self._connection()
        with describe_errors(f"updating the {kind.title} {resource.id}", aws.get_endpoint(kind.service)):
            kind.update(aws, resource.id, drop_internal(olds), news)
        return self._state(kind, resource.id, news | {"region": olds["region"]} if "region" in olds else news)

    def delete(self, resource: ResourceRef, olds: Properties) -> None:
        """Delete the object if it exists."""
        kind, aws = _kind(resource), self._connection()
        with describe_errors(f"deleting the {kind.title} {resource.id}", aws.get_endpoint(kind.service)):
            kind.delete(aws, resource.id, drop_internal(olds))

    def invoke(self, token: str, args: Properties) -> Properties:
        """Call one of the functions."""
        if token not in FUNCTIONS:
            raise UnsupportedError(f"the sandbox's aws provider has no function {token}; {_INSTALL}")
        return FUNCTIONS[token](self._connection(), args)

    def mark_secrets(self, properties: Properties, raw_inputs: Properties) -> Properties:
        """Mark properties secret as the inputs are."""
        return mark_secrets(properties, raw_inputs)

    def _connection(self) -> AwsConnection:
        if self.connection is None:
            raise SandboxProviderError(
                "the aws provider's configuration is not known yet: a part of it comes from a resource"
            )
        return self.connection

    def _state(self, kind: ResourceKind, resource_id: str, inputs: Properties) -> Properties:
        aws = self._connection()
        with describe_errors(f"reading the {kind.title} {resource_id} back", aws.get_endpoint(kind.service)):
            live = kind.read(aws, resource_id, inputs)
        if live is None:
            raise SandboxProviderError(
                f"the {kind.title} {resource_id} was deleted right after it was written; run the operation again"
            )
        return _keep_known_spellings(kind, live, inputs)


_INSTALL = "the real provider has it: `pulumi plugin install resource aws`"


def _kind(resource: ResourceRef) -> ResourceKind:
    if resource.type not in KINDS:
        raise UnsupportedError(f"the sandbox's aws provider has no {resource.type}; {_INSTALL}")
    return KINDS[resource.type]


def _keep_known_spellings(kind: ResourceKind, live: Properties, old_values: Properties) -> Properties:
    """Return the live state, with known spellings where AWS takes both as equal."""
    return live | {
        name: old_values[name]
        for name, definition in kind.properties.items()
        if name in old_values
        and name in live
        and old_values[name] != live[name]
        and definition.equal(old_values[name], live[name])
    }


def _to_inputs(kind: ResourceKind, outputs: Properties, old_inputs: Properties) -> Properties:
    """Return the inputs that produce the outputs: declared inputs, and inputs that differ from their default."""
    inputs: Properties = {}
    for name, definition in kind.properties.items():
        value = outputs.get(name)
        undeclared = name not in old_inputs
        if value is None or (
            undeclared and (definition.equal(value, definition.default) or (definition.computed and old_inputs))
        ):
            continue
        inputs[name] = value
    return inputs
