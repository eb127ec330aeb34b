"""A configured `aws` provider: the same check, diff and bookkeeping for every kind of resource."""
# ruff: noqa: ARG002  Every kind and every instance gets the same parameters.

from __future__ import annotations

from dataclasses import dataclass

from lakewright_sandbox.providers.aws.functions import FUNCTIONS
from lakewright_sandbox.providers.aws.resources.bucket import Bucket
from lakewright_sandbox.providers.aws.resources.bucket_lifecycle import BucketLifecycle
from lakewright_sandbox.providers.aws.resources.bucket_settings import (
    BucketEncryption,
    BucketOwnershipControls,
    BucketPolicy,
    BucketPublicAccessBlock,
    BucketVersioning,
)
from lakewright_sandbox.providers.aws.resources.calls import doing, having_made, making
from lakewright_sandbox.providers.aws.resources.connection import AwsConnection
from lakewright_sandbox.providers.aws.resources.key import KmsAlias, KmsKey
from lakewright_sandbox.providers.aws.resources.kind import ResourceKind
from lakewright_sandbox.providers.aws.resources.role import IamRole, IamRolePolicy
from lakewright_sandbox.providers.protocol.difference import Change, Difference
from lakewright_sandbox.providers.protocol.errors import SandboxProviderError, UnsupportedError
from lakewright_sandbox.providers.protocol.properties import (
    UNKNOWN,
    Properties,
    holds_unknown,
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
        BucketOwnershipControls(),
        BucketPolicy(),
        BucketPublicAccessBlock(),
        BucketVersioning(),
        KmsKey(),
        IamRole(),
        IamRolePolicy(),
    )
}


@dataclass(frozen=True)
class Account:
    """Resources in one sandbox; `connection` is None in a preview that does not know yet where that will be."""

    connection: AwsConnection | None
    plain_text_warning: str | None = None

    def check(
        self,
        of: ResourceRef,
        olds: Properties,
        news: Properties,
        seed: bytes,
    ) -> tuple[Properties, list[CheckFailure]]:
        """Refuse properties that this provider does not manage, and names left for it to choose."""
        kind, inputs = _kind(of), without_internal(news)
        failures = [
            CheckFailure(name, f"the sandbox's aws provider has no `{name}` for {of.type}; {_INSTALL}")
            for name in sorted(inputs.keys() - kind.properties.keys())
        ]
        failures += [
            CheckFailure(
                name, f"{of.type} needs `{name}`: the sandbox's aws provider chooses no names and no defaults for it"
            )
            for name, declared in kind.properties.items()
            if declared.required and inputs.get(name) in (None, "")
        ]
        if not failures and not holds_unknown(inputs):
            failures = [CheckFailure(name, reason) for name, reason in sorted(kind.problems(inputs).items())]
        return inputs, failures

    def diff(self, of: ResourceRef, olds: Properties, news: Properties, old_inputs: Properties) -> Difference:
        """Compare the state with what is declared, property by property, as AWS would."""
        kind = _kind(of)
        changes: dict[str, Change] = {}
        replaces: set[str] = set()
        for name, declared in kind.properties.items():
            wanted, live = news.get(name, declared.default), olds.get(name, declared.default)
            if (wanted is None and declared.computed) or declared.equal(live, wanted):
                continue
            found = declared.changes(name, live, wanted)
            changes |= found
            replaces |= found.keys() if declared.replaces else set()
        # Every object here has a name of its own, so the new one has to wait for the old one to go.
        same_object = holds_unknown(news) or kind.id_of(news) == of.id
        return Difference(changes, frozenset(replaces), bool(replaces) and same_object)

    def preview_create(self, of: ResourceRef, inputs: Properties) -> Properties:
        """What a preview shows: the inputs, and as unknown what AWS will choose."""
        return dict.fromkeys(_kind(of).computed_outputs, UNKNOWN) | inputs

    def create(self, of: ResourceRef, inputs: Properties) -> tuple[str, Properties]:
        """Make the object and read it back; PerhapsMadeError where it may exist although that failed."""
        kind, aws = _kind(of), self._connection()
        made = kind.id_of(inputs)
        with making(f"creating the {kind.title} {made}".rstrip(), aws.endpoint_of(kind.service)):
            made = kind.create(aws, inputs) or made
        with having_made(f"reading the {kind.title} {made} back", aws.endpoint_of(kind.service)):
            return made, self._state(kind, made, inputs)

    def read(self, of: ResourceRef, olds: Properties, old_inputs: Properties) -> ReadResult | None:
        """The object as it is; without an id, the one that the inputs name."""
        kind, aws = _kind(of), self._connection()
        sought = of.id or kind.id_of(old_inputs)
        known = without_internal(old_inputs) | without_internal(olds)
        with doing(f"reading the {kind.title} {sought}", aws.endpoint_of(kind.service)):
            live = kind.read(aws, sought, known)
        if live is None:
            return None
        outputs = _settled(kind, live, known)
        return ReadResult(sought, outputs, _inputs_of(kind, outputs, without_internal(old_inputs)))

    def preview_update(self, of: ResourceRef, olds: Properties, news: Properties) -> Properties:
        """What a preview shows: the state with the new inputs over it."""
        shown = without_internal(olds) | news
        if "tagsAll" in shown:
            shown["tagsAll"] = news.get("tags") or {}
        return {key: value for key, value in shown.items() if key in news or key not in _kind(of).properties} | {
            key: olds[key]
            for key, declared in _kind(of).properties.items()
            if key not in news and key in olds and declared.computed
        }

    def update(self, of: ResourceRef, olds: Properties, news: Properties) -> Properties:
        """Change the object and read it back."""
        kind, aws = _kind(of), self._connection()
        with doing(f"updating the {kind.title} {of.id}", aws.endpoint_of(kind.service)):
            kind.update(aws, of.id, without_internal(olds), news)
        return self._state(kind, of.id, news | {"region": olds["region"]} if "region" in olds else news)

    def delete(self, of: ResourceRef, olds: Properties) -> None:
        """Delete the object, if it is still there."""
        kind, aws = _kind(of), self._connection()
        with doing(f"deleting the {kind.title} {of.id}", aws.endpoint_of(kind.service)):
            kind.delete(aws, of.id, without_internal(olds))

    def invoke(self, token: str, args: Properties) -> Properties:
        """Call one of the functions."""
        if token not in FUNCTIONS:
            raise UnsupportedError(f"the sandbox's aws provider has no function {token}; {_INSTALL}")
        return FUNCTIONS[token](self._connection(), args)

    def secrets_of(self, properties: Properties, raw_inputs: Properties) -> Properties:
        """Properties are secret where the inputs were."""
        return mark_secrets(properties, raw_inputs)

    def _connection(self) -> AwsConnection:
        if self.connection is None:
            raise SandboxProviderError(
                "the aws provider's configuration is not known yet: a part of it comes from a resource"
            )
        return self.connection

    def _state(self, kind: ResourceKind, resource_id: str, inputs: Properties) -> Properties:
        aws = self._connection()
        with doing(f"reading the {kind.title} {resource_id} back", aws.endpoint_of(kind.service)):
            live = kind.read(aws, resource_id, inputs)
        if live is None:
            raise SandboxProviderError(
                f"the {kind.title} {resource_id} was gone again right after it was written; run it again"
            )
        return _settled(kind, live, inputs)


_INSTALL = "the real one does: `pulumi plugin install resource aws`"


def _kind(of: ResourceRef) -> ResourceKind:
    if of.type not in KINDS:
        raise UnsupportedError(f"the sandbox's aws provider has no {of.type}; {_INSTALL}")
    return KINDS[of.type]


def _settled(kind: ResourceKind, live: Properties, known: Properties) -> Properties:
    """The live state, in the words of what was known where AWS takes both as the same."""
    return live | {
        name: known[name]
        for name, declared in kind.properties.items()
        if name in known and name in live and known[name] != live[name] and declared.equal(known[name], live[name])
    }


def _inputs_of(kind: ResourceKind, outputs: Properties, old_inputs: Properties) -> Properties:
    """The inputs that say what the outputs say: what was declared, and what is not as it would be by default."""
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
