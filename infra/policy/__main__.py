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


def _strip_proxies(value: Any) -> Any:
    """Return a value without proxies, with UNKNOWN for what a preview does not know."""
    match value:
        case Mapping():
            return {key: _read_item(value, key) for key in value}
        case str():
            return value
        case Sequence():
            return [_read_item(value, index) for index in range(len(value))]
        case _:
            return value


def _read_item(values: Any, key: Any) -> Any:
    try:
        return _strip_proxies(values[key])
    except UnknownValueError:
        return UNKNOWN


def _convert_resource(resource: ResourceValidationArgs | PolicyResource) -> CheckedResource:
    needs = getattr(resource, "property_dependencies", {})
    return CheckedResource(
        resource.resource_type,
        resource.name,
        resource.urn,
        _strip_proxies(resource.props),
        {name: tuple(dependency.urn for dependency in dependencies) for name, dependencies in needs.items()},
    )


def _resource_policy(rule: ResourceRule) -> ResourceValidationPolicy:
    def validate(args: ResourceValidationArgs, report: Any) -> None:
        if rule.checks_type(args.resource_type):
            trial = bool(rule.in_trials is not None and args.get_config().get("trial"))
            for message in rule.find(_convert_resource(args), trial=trial):
                report(message)

    return ResourceValidationPolicy(
        name=rule.name,
        description=rule.description,
        validate=validate,
        enforcement_level=EnforcementLevel.ADVISORY if rule.is_warning else EnforcementLevel.MANDATORY,
        config_schema=_TRIAL if rule.in_trials is not None else None,
    )


def _stack_policy(rule: StackRule) -> StackValidationPolicy:
    def validate(args: StackValidationArgs, report: Any) -> None:
        for urn, message in rule.check([_convert_resource(resource) for resource in args.resources]):
            report(message, urn)

    return StackValidationPolicy(
        name=rule.name,
        description=rule.description,
        validate=validate,
        enforcement_level=EnforcementLevel.MANDATORY,
    )


PolicyPack("lakewright", [*map(_resource_policy, RULES), *map(_stack_policy, STACK_RULES)])
