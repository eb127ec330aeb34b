"""The platform stack that an environment takes its addresses from."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

from lakewright.environment.platform_outputs import OUTPUT, parse_platform_outputs
from lakewright.validation.documents import as_mapping
from lakewright.validation.problems import Problem, SpecError
from lakewright.validation.strict_model import StrictModel

PlatformReader = Callable[[str], Any]
"""Returns the output `platform` of a stack; None if the stack has none."""

_STACK = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")


def _stack_name(value: str) -> str:
    if not _STACK.fullmatch(value):
        raise ValueError(
            "expected ORGANIZATION/PROJECT/STACK, such as `acme/lakewright-platform/prod`; in a backend of files, the"
            " organization is `organization`"
        )
    return value


class PlatformReference(StrictModel):
    """A platform stack. Its outputs are defaults of the environment."""

    stack: Annotated[str, AfterValidator(_stack_name)]
    """ORGANIZATION/PROJECT/STACK. Only environments name it: a tenant's spec could name a server of the tenant."""


def read_in_program(stack: str) -> Any:
    """Return the output `platform` of a stack, from within a Pulumi program."""
    import pulumi  # noqa: PLC0415 - a spec is checked without it

    try:
        result = pulumi.runtime.invoke("pulumi:pulumi:readStackOutputs", {"name": stack})
    except Exception as error:  # noqa: BLE001 - the SDK raises plain exceptions
        raise SpecError(f"platform stack {stack}", [Problem("", f"cannot be read: {error}")]) from None
    return result.value["outputs"].get(OUTPUT)


def read_platform_name(document: Mapping[str, Any]) -> str | None:
    """Return the platform stack that an environment's document names; None without one, or if the name is wrong."""
    stack = as_mapping(document.get("platform")).get("stack")
    return stack if isinstance(stack, str) and _STACK.fullmatch(stack) else None


def platform_document(stack: str, read: PlatformReader | None) -> dict[str, dict[str, Any]]:
    """Return the sections of an environment that a platform stack defines. Raises SpecError."""
    if read is None:
        reason = "is read from its stack, which this command cannot do"
        raise SpecError(f"platform stack {stack}", [Problem("", reason)])
    outputs = read(stack)
    if outputs is None:
        reason = f"has no output `{OUTPUT}`: run `pulumi up` in infra/platform first"
        raise SpecError(f"platform stack {stack}", [Problem("", reason)])
    return parse_platform_outputs(outputs, stack).environment_document()
