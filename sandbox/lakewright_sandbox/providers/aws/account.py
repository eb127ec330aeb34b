"""A configured `aws` provider: check, diff and bookkeeping are the same for every kind of resource."""
# ruff: noqa: ARG002  Every kind and every instance gets the same parameters.

from __future__ import annotations

from dataclasses import dataclass

from lakewright_sandbox.providers.aws.functions import FUNCTIONS
from lakewright_sandbox.providers.aws.resources.bucket import Bucket
from lakewright_sandbox.providers.aws.resources.bucket_lifecycle import BucketLifecycle
from lakewright_sandbox.providers.aws.resources.bucket_settings import (
    BucketEncryption,
    BucketLogging,
    BucketOwnershipControls,
    BucketPolicy,
    BucketPublicAccessBlock,
    BucketVersioning,
)
from lakewright_sandbox.providers.aws.resources.calls import after_creating, creating, describing_errors
from lakewright_sandbox.providers.aws.resources.connection import AwsConnection
from lakewright_sandbox.providers.aws.resources.key import KmsAlias, KmsKey
from lakewright_sandbox.providers.aws.resources.kind import ResourceKind
from lakewright_sandbox.providers.aws.resources.role import IamRole, IamRolePolicy, IamRolePolicyAttachment
from lakewright_sandbox.providers.protocol.difference import Change, Difference
from lakewright_sandbox.providers.protocol.errors import SandboxProviderError, UnsupportedError
from lakewright_sandbox.providers.protocol.properties import (
    UNKNOWN,
    Properties,
    contains_unknown,
    mark_secrets,
    without_internal,
)
from lakewright_sandbox.providers.protocol.servicer import CheckFailure, ReadResult, ResourceRef

KINDS: dict[str, ResourceKind] = {
    kind.token: kind
    for kind in (
        KmsAlias(),
        Bucket(),
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
    ) -> tuple[Properties, list[CheckFailure]]:
        """Refuse properties that this provider does not manage, and missing required ones."""
        kind, inputs = _kind(resource), without_internal(news)
        failures = [
            CheckFailure(name, f"the sandbox's aws provider has no `{name}` for {resource.type}; {_INSTALL}")
            for name in sorted(inputs.keys() - kind.properties.keys())
        ]
        failures += [
            CheckFailure(
                name,
                f"{resource.type} needs `{name}`: the sandbox's aws provider chooses no names and no defaults for it",
            )
            for name, declared in kind.properties.items()
            if declared.required and inputs.get(name) in (None, "")
        ]
        if not failures and not contains_unknown(inputs):
            failures = [CheckFailure(name, reason) for name, reason in sorted(kind.problems(inputs).items())]
        return inputs, failures

    def diff(self, resource: ResourceRef, olds: Properties, news: Properties, old_inputs: Properties) -> Difference:
        """Compare the state with the declared inputs, property by property, as AWS would."""
        kind = _kind(resource)
        changes: dict[str, Change] = {}
        replaces: set[str] = set()
        for name, declared in kind.properties.items():
            wanted, live = news.get(name, declared.default), olds.get(name, declared.default)
            if (wanted is None and declared.computed) or declared.equal(live, wanted):
                continue
            found = declared.changes(name, live, wanted)
            changes |= found
            replaces |= found.keys() if declared.replaces else set()
        # Every object has an explicit name, so the old one must be deleted before the new one is created.
        same_object = contains_unknown(news) or kind.id_of(news) == resource.id
        return Difference(changes, frozenset(replaces), bool(replaces) and same_object)

    def preview_create(self, resource: ResourceRef, inputs: Properties) -> Properties:
        """Return the inputs, and the properties that AWS will choose as unknown."""
        return dict.fromkeys(_kind(resource).computed_outputs, UNKNOWN) | inputs

    def create(self, resource: ResourceRef, inputs: Properties) -> tuple[str, Properties]:
        """Create the object and read it back. Raises MaybeCreatedError if it may exist although that failed."""
        kind, aws = _kind(resource), self._connection()
        made = kind.id_of(inputs)
        with creating(f"creating the {kind.title} {made}".rstrip(), aws.endpoint_of(kind.service)):
            made = kind.create(aws, inputs) or made
        with after_creating(f"reading the {kind.title} {made} back", aws.endpoint_of(kind.service)):
            return made, self._state(kind, made, inputs)

    def read(self, resource: ResourceRef, olds: Properties, old_inputs: Properties) -> ReadResult | None:
        """Return the live object; without an id, the one that the inputs name."""
        kind, aws = _kind(resource), self._connection()
        sought = resource.id or kind.id_of(old_inputs)
        known = without_internal(old_inputs) | without_internal(olds)
        with describing_errors(f"reading the {kind.title} {sought}", aws.endpoint_of(kind.service)):
            live = kind.read(aws, sought, known)
        if live is None:
            return None
        outputs = _settled(kind, live, known)
        return ReadResult(sought, outputs, _to_inputs(kind, outputs, without_internal(old_inputs)))

    def preview_update(self, resource: ResourceRef, olds: Properties, news: Properties) -> Properties:
        """Return the state with the new inputs."""
        state = without_internal(olds) | news
        if "tagsAll" in state:
            state["tagsAll"] = news.get("tags") or {}
        return {key: value for key, value in state.items() if key in news or key not in _kind(resource).properties} | {
            key: olds[key]
            for key, declared in _kind(resource).properties.items()
            if key not in news and key in olds and declared.computed
        }

    def update(self, resource: ResourceRef, olds: Properties, news: Properties) -> Properties:
        """Update the object and read it back."""
        kind, aws = _kind(resource), self._connection()
        with describing_errors(f"updating the {kind.title} {resource.id}", aws.endpoint_of(kind.service)):
            kind.update(aws, resource.id, without_internal(olds), news)
        return self._state(kind, resource.id, news | {"region": olds["region"]} if "region" in olds else news)

    def delete(self, resource: ResourceRef, olds: Properties) -> None:
        """Delete the object if it exists."""
        kind, aws = _kind(resource), self._connection()
        with describing_errors(f"deleting the {kind.title} {resource.id}", aws.endpoint_of(kind.service)):
            kind.delete(aws, resource.id, without_internal(olds))

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
        with describing_errors(f"reading the {kind.title} {resource_id} back", aws.endpoint_of(kind.service)):
            live = kind.read(aws, resource_id, inputs)
        if live is None:
            raise SandboxProviderError(
                f"the {kind.title} {resource_id} was gone again right after it was written; run it again"
            )
        return _settled(kind, live, inputs)


_INSTALL = "the real one does: `pulumi plugin install resource aws`"


def _kind(resource: ResourceRef) -> ResourceKind:
    if resource.type not in KINDS:
        raise UnsupportedError(f"the sandbox's aws provider has no {resource.type}; {_INSTALL}")
    return KINDS[resource.type]


def _settled(kind: ResourceKind, live: Properties, known: Properties) -> Properties:
    """Return the live state, with known spellings where AWS takes both as equal."""
    return live | {
        name: known[name]
        for name, declared in kind.properties.items()
        if name in known and name in live and known[name] != live[name] and declared.equal(known[name], live[name])
    }


def _to_inputs(kind: ResourceKind, outputs: Properties, old_inputs: Properties) -> Properties:
    """Return the inputs that produce the outputs: the declared ones, and those that differ from their default."""
    inputs: Properties = {}
    for name, declared in kind.properties.items():
        value = outputs.get(name)
        undeclared = name not in old_inputs
        if value is None or (
            undeclared and (declared.equal(value, declared.default) or (declared.computed and old_inputs))
        ):
            continue
        inputs[name] = value
    return inputs
