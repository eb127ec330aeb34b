"""The stack that runs, as programs and providers find it.

`pulumi.dynamic` passes the URN of a resource to its servicer, and does not pass it on to `delete(id, props)`. The
properties cannot replace it: a copy of a state has the properties of the other stack. The servicer's request is
therefore read from the frames that call the provider. Both engines use this servicer.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from lakewright.ownership.mark import format_stack

_URN = "urn:pulumi:"

T = TypeVar("T")


def find_running_stack() -> str | None:
    """Return the stack whose resource the engine asks a provider about, as `PROJECT/STACK`.

    Call it in the thread of the provider's hook, directly or through other functions.

    Returns:
        None outside a provider's hook, such as in a program or a test.
    """
    urn = find_running_urn()
    return parse_stack(urn) if urn else None


def find_running_urn() -> str | None:
    """Return the URN of the resource that the engine asks a provider about; None outside a provider's hook.

    Call it in the thread of the provider's hook, directly or through other functions.
    """
    frame = inspect.currentframe()
    while frame is not None:
        urn = getattr(frame.f_locals.get("request"), "urn", None)
        if isinstance(urn, str) and urn.startswith(_URN):
            return urn
        frame = frame.f_back
    return None


def run_as_stack(project: str, stack: str, hook: Callable[[], T]) -> T:
    """Call a provider's hook outside an engine, as an engine does for a stack."""
    return _call_hook(_HookRequest(f"{_URN}{stack}::{project}::pulumi:pulumi:Stack::{project}-{stack}"), hook)


@dataclass(frozen=True)
class _HookRequest:
    urn: str


def _call_hook(request: _HookRequest, hook: Callable[[], T]) -> T:  # noqa: ARG001 - `find_running_urn` reads it
    return hook()


def find_program_stack() -> str:
    """Return the stack of the running program, as `PROJECT/STACK`."""
    import pulumi  # noqa: PLC0415 - slow to load, and not needed by the command line

    return format_stack(pulumi.get_project(), pulumi.get_stack())


def parse_stack(urn: str) -> str:
    """Return the stack of `urn:pulumi:STACK::PROJECT::TYPE::NAME`, as `PROJECT/STACK`."""
    stack, _, remainder = urn.removeprefix(_URN).partition("::")
    return format_stack(remainder.partition("::")[0], stack)


FILE = "LAKEWRIGHT_ADOPTED_RESOURCES"
"""Environment variable: path of a file with one URN per line."""


def record_adopted_resource() -> None:
    """Append the URN of the resource that a provider checks to the file, if `lakewright` runs the provider."""
    path, urn = os.environ.get(FILE), find_running_urn()
    if not path or urn is None:
        return
    try:
        # One write of one line: threads of the process may check resources at the same time.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    except FileNotFoundError:
        return  # the variable outlived its run
    try:
        os.write(descriptor, f"{urn}\n".encode())
    finally:
        os.close(descriptor)
