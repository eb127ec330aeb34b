"""Runs of stacks: a provider's hook, called as the engine calls it for a stack."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TypeVar

from lakewright.lakekeeper.provider import run_context

T = TypeVar("T")


def run_as(stack: str, hook: Callable[[], T]) -> T:
    """Run a provider's hook as the engine does for a stack, in a process of its own."""
    request = SimpleNamespace(urn=f"urn:pulumi:{stack}::lakewright::pulumi-python:dynamic:Resource::acme")
    run_context.start(run_context.current().next())
    assert request
    return hook()


def run_with_record(stack: str, record: str, hook: Callable[[], T]) -> T:
    """Run a provider's hook in a run whose first check was that of the tenant's record."""

    def run() -> T:
        run_context.current().record_id = record
        return hook()

    return run_as(stack, run)
