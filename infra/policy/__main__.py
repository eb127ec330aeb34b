"""The policy pack: the rules of `lakewright_policy` as Pulumi policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakewright_policy.registry import RULES, STACK_RULES
from lakewright_policy.resource import UNKNOWN, CheckedResource, ResourceRule, StackRule
from pulumi_policy import (
    EnforcementLevel,
    PolicyConfigSchema,
    PolicyPack,
    PolicyResource,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.proxy import UnknownValueError

_TRIAL = PolicyConfigSchema(
    properties={"trial": {"type": "boolean", "default": False, "description": "Whether the stack is a trial."}}
)


def _known(value: Any) -> Any:
    """Return a value without proxies, with UNKNOWN for what a preview does not know."""
    match value:
        case Mapping():
            return {key: _known_at(value, key) for key in value}
        case str():
            return value
        case Sequence():
            return [_known_at(value, index) for index in range(len(value))]
        case _:
            return value


def _known_at(values: Any, key: Any) -> Any:
    try:
        return _known(values[key])
    except UnknownValueError:
        return UNKNOWN


def _checked(resource: ResourceValidationArgs | PolicyResource) -> CheckedResource:
    needs = getattr(resource, "property_dependencies", {})
    return CheckedResource(
        resource.resource_type,
        resource.name,
        resource.urn,
        _known(resource.props),
        {name: tuple(needed.urn for needed in found) for name, found in needs.items()},
    )


def _resource_policy(rule: ResourceRule) -> ResourceValidationPolicy:
    def validate(args: ResourceValidationArgs, report: Any) -> None:
        if rule.applies_to(args.resource_type):
            trial = bool(rule.in_trials is not None and args.get_config().get("trial"))
            for found in rule.find(_checked(args), trial=trial):
                report(found)

    return ResourceValidationPolicy(
        name=rule.name,
        description=rule.description,
        validate=validate,
        enforcement_level=EnforcementLevel.ADVISORY if rule.is_warning else EnforcementLevel.MANDATORY,
        config_schema=_TRIAL if rule.in_trials is not None else None,
    )


def _stack_policy(rule: StackRule) -> StackValidationPolicy:
    def validate(args: StackValidationArgs, report: Any) -> None:
        for urn, found in rule.check([_checked(resource) for resource in args.resources]):
            report(found, urn)

    return StackValidationPolicy(
        name=rule.name,
        description=rule.description,
        validate=validate,
        enforcement_level=EnforcementLevel.MANDATORY,
    )


PolicyPack("lakewright", [*map(_resource_policy, RULES), *map(_stack_policy, STACK_RULES)])
