"""Rules on warehouses: no static credential, protection from deletion, soft deletion."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lakewright_policy.resource import UNKNOWN, CheckedResource, ResourceRule, allow, as_mapping

_WAREHOUSE = r"pulumi-python:dynamic/lakekeeper:Warehouse"
_ACCESS_KEY = r"aws:iam/accessKey:AccessKey"
_STATIC = frozenset({"access-key", "cloudflare-r2", "shared-access-key", "client-credentials", "service-account-key"})
"""Credentials that are valid until they are changed."""


def _static_credential(resource: CheckedResource) -> Iterator[str]:
    if re.fullmatch(_ACCESS_KEY, resource.type):
        yield "the stack makes an access key, which is valid until it is deleted: let principals assume a role"
        return
    kind = as_mapping(resource.props.get("credential")).get("type")
    if kind in _STATIC:
        yield (
            f"the warehouse has a static credential (`{kind}`): use the server's identity with a role"
            " (`aws-system-identity`), or mark the stack as a trial"
        )


def _find_unprotected(resource: CheckedResource) -> Iterator[str]:
    if not resource.is_known("protected", "deletion"):
        return
    if resource.props.get("protected") is not True and resource.props.get("deletion", "protect") == "purge":
        yield "destroying the stack purges the warehouse: use `deletion: protect` or `retain`, or set `protected: true`"


def _final_drop(resource: CheckedResource) -> Iterator[str]:
    profile = resource.props.get("delete_profile")
    kind = as_mapping(profile).get("type")
    if profile is not UNKNOWN and kind is not UNKNOWN and kind != "soft":
        yield "dropped tables cannot be restored: set `soft_delete_days`"


STATIC_CREDENTIAL = ResourceRule(
    "static-credential",
    "Warehouses use no static credentials outside trials.",
    re.compile(f"{_WAREHOUSE}|{_ACCESS_KEY}"),
    _static_credential,
    in_trials=allow,
)
UNPROTECTED_WAREHOUSE = ResourceRule(
    "unprotected-warehouse",
    "Destroying a stack does not purge a warehouse outside trials.",
    re.compile(_WAREHOUSE),
    _find_unprotected,
    in_trials=allow,
)
SOFT_DELETE_OFF = ResourceRule(
    "soft-delete-off",
    "Dropped tables can be restored for some time.",
    re.compile(_WAREHOUSE),
    _final_drop,
    is_warning=True,
)
