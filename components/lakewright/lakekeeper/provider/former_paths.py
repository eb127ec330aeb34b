"""Module paths that providers had in earlier versions: the state of a stack names a provider by its module and class.

Pulumi pickles a provider into each of its resources. Modules that no longer exist are put into `sys.modules` here;
packages that have the name of a former module get their provider from `former_provider`.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

ROOT = "lakewright.lakekeeper"

FORMER: dict[str, str] = {
    "bootstrap": "server.bootstrap",
    "bucket_removal": "buckets.bucket_removal",
    "deletion_guard": "tenant.deletion_guard",
    "external_id": "storage.external_id",
    "grant": "grants.grant",
    "grants": "grants.grants",
    "namespace": "warehouse.namespace",
    "project": "server.project",
    "role": "identity.role",
    "role_members": "identity.role_members",
    "table": "table.resource",
    "task_queue_config": "warehouse.task_queue_config",
    "tenant_record": "tenant.tenant_record",
    "user": "identity.user",
    "warehouse": "warehouse.resource",
}
"""Modules of providers by their former paths, both below `lakewright.lakekeeper`."""


class _FormerModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        return former_provider(self.__name__, name)


def former_provider(module: str, name: str) -> Any:
    """Return a provider class by its former module path.

    Raises:
        AttributeError: There was no such provider.
    """
    path = FORMER.get(module.removeprefix(f"{ROOT}."))
    if path is None or not name.endswith("Provider"):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return getattr(import_module(f"{ROOT}.{path}"), name)


def install() -> None:
    """Make the former module paths importable. A module is loaded when a provider of it is requested."""
    packages = {path.partition(".")[0] for path in FORMER.values()}
    for former in FORMER.keys() - packages:
        name = f"{ROOT}.{former}"
        sys.modules.setdefault(name, _FormerModule(name))
