"""Find policies of tenants' roles on AWS that no stack has: one list for all roles of an account."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from lakewright.discovery.unmanaged.finding import UnmanagedObject
from lakewright.drift.detection.steps import DriftRun
from lakewright.drift.model import Finding, ScanProblem
from lakewright.drift.objects.aws.account import (
    SETTINGS,
    AccountUnreachableError,
    AwsAccountReader,
    ReadRefusedError,
    account_key,
    open_account,
)
from lakewright.drift.objects.provider_reads import provider_settings
from lakewright.drift.session import StackResource
from lakewright.validation.documents import as_list, as_mapping

_ROLE = "aws:iam/role:Role"
_INLINE = "aws:iam/rolePolicy:RolePolicy"
_ATTACHED = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"


def find_unmanaged_policies(run: DriftRun) -> Iterator[Finding]:
    """Yield the inline and attached policies of the roles of stacks that are in no stack of the run."""
    resources, session = run.resources, run.session
    managed = {
        (_find_account(resource), resource.state.type, str(resource.state.inputs.get("role")), _get_policy(resource))
        for resource in resources
        if resource.state.type in {_INLINE, _ATTACHED}
    }
    accounts: dict[str | None, dict[str, Any]] = {}
    roles: dict[str | None, list[StackResource]] = defaultdict(list)
    for resource in resources:
        settings = _read_settings(resource) if resource.state.type == _ROLE else None
        if settings is None:
            continue  # the scanner reports a missing provider
        key = account_key(settings)
        accounts[key] = settings
        roles[key].append(resource)
    for key, tenant_roles in roles.items():
        try:
            policies_by_role = _list_policies(open_account(accounts[key], session))
        except (AccountUnreachableError, ReadRefusedError) as error:
            text = f"unmanaged policies of roles could not be searched: AWS: {error}"
            yield from (
                ScanProblem(stack, text) for stack in dict.fromkeys(resource.stack for resource in tenant_roles)
            )
            continue
        for resource in tenant_roles:
            role = resource.state.id
            for kind, policy in policies_by_role.get(role, ()):
                # A policy whose provider is missing may be in any account.
                if managed.isdisjoint({(key, kind, role, policy), (None, kind, role, policy)}):
                    unmanaged_policy = UnmanagedObject(
                        kind, f"{policy} of role {role}", policy, "policy", (role, policy)
                    )
                    yield unmanaged_policy.to_difference(resource.stack, resource.tenant)


def _read_settings(resource: StackResource) -> dict[str, Any] | None:
    """Return the settings of a resource's provider that decide on the account; None if the state lacks the provider."""
    inputs = provider_settings(resource)
    return None if inputs is None else {key: value for key, value in inputs.items() if key in SETTINGS}


def _find_account(resource: StackResource) -> str | None:
    settings = _read_settings(resource)
    return None if settings is None else account_key(settings)


def _get_policy(resource: StackResource) -> str:
    inputs: Mapping[str, Any] = resource.state.inputs
    return str(inputs.get("policyArn") if resource.state.type == _ATTACHED else inputs.get("name"))


def _list_policies(account: AwsAccountReader) -> dict[str, list[tuple[str, str]]]:
    """Return type and name or ARN of each role's policies. Raises AccountUnreachableError and ReadRefusedError."""
    policies_by_role: dict[str, list[tuple[str, str]]] = {}
    for role in account.list_role_details():
        inline = [as_mapping(policy) for policy in as_list(role.get("RolePolicyList"))]
        attached = [as_mapping(policy) for policy in as_list(role.get("AttachedManagedPolicies"))]
        policies_by_role[str(role["RoleName"])] = [
            *((_INLINE, str(policy["PolicyName"])) for policy in inline),
            *((_ATTACHED, str(policy["PolicyArn"])) for policy in attached),
        ]
    return policies_by_role
