"""AccessRole: an IAM role with one inline policy, for one purpose of one warehouse."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pulumi
from pulumi_aws import iam

from lakewright.aws.access import DEFAULT_SESSION_SECONDS, Policy
from lakewright.aws.existing import ROLE_POLICY
from lakewright.credentials.policy_fingerprint import TRUST_FINGERPRINT, fingerprint_policy
from lakewright.lakekeeper.provider.options import list_aliases


class AccessRole(pulumi.ComponentResource):
    """A role of a warehouse."""

    arn: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        role: pulumi.Input[str],
        path: pulumi.Input[str],
        description: pulumi.Input[str],
        trust: pulumi.Input[Policy],
        rights: pulumi.Input[Policy],
        session_seconds: int | None = None,
        permissions_boundary: str | None = None,
        tags: Mapping[str, pulumi.Input[str]] | None = None,
        retain: bool = False,
        after: Sequence[pulumi.Resource] = (),
        existing: str | None = None,
        renamed_from: str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the role.

        Args:
            name: Name of the component.
            role: Name of the IAM role. It is kept when the component is renamed.
            path: IAM path of the role, which cannot change.
            description: Description of the role.
            trust: Trust policy.
            rights: Policy of the role.
            session_seconds: Longest session that the role must allow; None for IAM's default of an hour.
            permissions_boundary: ARN of the managed policy that limits the role.
            tags: Tags of the role.
            retain: Whether the role is kept when the stack is destroyed.
            after: Resources that are made first.
            existing: Name of a role to adopt; None to make one.
            renamed_from: Earlier name of the component.
            opts: Options of the component.
        """
        earlier = pulumi.ResourceOptions(aliases=list_aliases(renamed_from))
        super().__init__("lakewright:index:AccessRole", name, {}, pulumi.ResourceOptions.merge(opts, earlier))
        inside = pulumi.ResourceOptions(parent=self, retain_on_delete=retain, depends_on=after)
        within = pulumi.ResourceOptions.merge(inside, earlier)
        longest = session_seconds if session_seconds and session_seconds > DEFAULT_SESSION_SECONDS else None
        iam_role = iam.Role(
            name,
            name=role,
            path=path,
            description=description,
            assume_role_policy=pulumi.Output.from_input(trust).apply(json.dumps),
            max_session_duration=longest,
            permissions_boundary=permissions_boundary,
            tags=tags,
            opts=pulumi.ResourceOptions.merge(within, pulumi.ResourceOptions(import_=existing)),
        )
        policy = iam.RolePolicy(
            name,
            name=ROLE_POLICY,
            role=iam_role.name,
            policy=pulumi.Output.from_input(rights).apply(json.dumps),
            opts=within,
        )
        # Users of the ARN need the policy, so the ARN is known only after the policy exists.
        self.arn = pulumi.Output.all(iam_role.arn, policy.id).apply(lambda values: values[0])
        # Reports of drift compare it without the stack's passphrase: the external ID makes the trust policy a secret.
        trust_and_name = pulumi.Output.all(iam_role.assume_role_policy, iam_role.name)
        proof = pulumi.Output.unsecret(trust_and_name.apply(lambda values: fingerprint_policy(*values)))
        self.register_outputs({"arn": self.arn, TRUST_FINGERPRINT: proof})
