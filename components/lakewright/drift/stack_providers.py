"""Providers of the resources of many stacks in one process, and the secrets in the configurations of the stacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from lakewright.credentials.references import ConfigLookup, resolve
from lakewright.lakekeeper.provider.base import LakekeeperProvider

if TYPE_CHECKING:
    from pulumi.dynamic import ResourceProvider

    from lakewright.drift.session import ScanSession
    from lakewright.lakekeeper.provider.run_context import RunContext


def create_provider(
    provider_type: type[ResourceProvider], session: ScanSession, stack: str, context: RunContext
) -> ResourceProvider:
    """Return a provider with the context and the configuration of a stack.

    Args:
        provider_type: Class of the provider.
        session: The run over many stacks.
        stack: The stack.
        context: The stack's part of the run.
    """
    provider = provider_type()
    if isinstance(provider, LakekeeperProvider):
        lakekeeper_provider = cast("LakekeeperProvider[Any]", provider)
        lakekeeper_provider.own_run = context
        lakekeeper_provider.config = _create_lookup(session, stack)
        return lakekeeper_provider
    return provider


def create_resolver(session: ScanSession, stack: str) -> Callable[[str], str]:
    """Return a function that returns the secret of a reference, also of a reference to the stack's configuration.

    Two stacks with equal references can have different secrets, so use the function with a `ClientPool` of the stack.
    """
    lookup = _create_lookup(session, stack)
    return lambda reference: resolve(reference, lookup)


def _create_lookup(session: ScanSession, stack: str) -> ConfigLookup:
    """Return a function that reads the stack's configuration. Keys without a project are keys of the run's project."""

    def lookup(key: str) -> str | None:
        return session.config(stack).get(key if ":" in key else f"{session.project.name}:{key}")

    return lookup
