"""Base of lookups: connect to a server, inside or outside a Pulumi program, and wait for outputs.

A lookup is a plain function, `get_...(server=..., ...)`, that queries a server. It returns a typed value or raises a
LakekeeperError. Its counterpart `get_..._output` also accepts outputs of resources and returns an output. Lookups
neither accept nor return secrets: `server` references them, and they are read when they are used. Importing this file
does not import Pulumi.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from lakewright.credentials import references as credentials
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import InvalidLookupError
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.provider import run_context

if TYPE_CHECKING:
    import pulumi

T = TypeVar("T")

Server = ServerRef | Mapping[str, Any]
"""Address of a server, and how to authenticate: `{"endpoint": ..., "auth": {...}}`, secrets by reference."""

MAX_LISTED_NAMES = 10
"""Maximum number of names in a message. The message gives the number of further names."""


class LookupResult(BaseModel):
    """Base of the results of lookups. `model_dump()` returns a result as a dict."""

    model_config = ConfigDict(frozen=True)


def reach(server: Server) -> Client:
    """Return the client of a server.

    Raises:
        LakekeeperError: If the server cannot be reached, or is too old.
    """
    return run_context.current().client(_reference(server), _secret)


def as_output(look_up: Callable[..., T]) -> Callable[..., pulumi.Output[T]]:
    """Return the output form of a lookup, which accepts outputs for all arguments and for values within `server`.

    It waits until they are known. In a preview that does not know them yet, the result is unknown too.
    """
    signature = inspect.signature(look_up)

    def later(**arguments: Any) -> pulumi.Output[T]:
        import pulumi  # noqa: PLC0415 - takes most of a second to load

        signature.bind(**arguments)  # a wrong argument name fails at the caller's line
        return pulumi.Output.all(**arguments).apply(lambda values: asyncio.to_thread(look_up, **values))

    later.__name__ = later.__qualname__ = f"{look_up.__name__}_output"
    later.__doc__ = f"Like `{look_up.__name__}`, but accepts outputs as arguments and returns an output."
    return later


def format_names(names: Iterable[str]) -> str:
    """Return names for a message: the first few, and the number of further names."""
    sorted_names = sorted(names)
    more = f" and {len(sorted_names) - MAX_LISTED_NAMES} more" if len(sorted_names) > MAX_LISTED_NAMES else ""
    return ", ".join(f"`{name}`" for name in sorted_names[:MAX_LISTED_NAMES]) + more if sorted_names else "none"


def _reference(server: Server) -> ServerRef:
    if isinstance(server, ServerRef):
        return server
    try:
        return ServerRef.model_validate(dict(server))
    except ValidationError as error:
        # Values are left out: one of them may be a secret in place of a reference.
        failures = error.errors(include_url=False, include_context=False, include_input=False)
        reasons = "; ".join(f"{'.'.join(map(str, failure['loc']))}: {failure['msg']}" for failure in failures)
        raise InvalidLookupError(f"`server` of a lookup is invalid: {reasons}") from None


def _secret(reference: str) -> str:
    return credentials.resolve(reference, _stack_config)


def _stack_config(key: str) -> str | None:
    """Return a value of the stack configuration, or None outside a Pulumi program."""
    if "pulumi" not in sys.modules:
        return None
    import pulumi  # noqa: PLC0415 - imported only if a program has loaded it

    space, _, name = key.rpartition(":")
    return pulumi.Config(space or pulumi.get_project()).get(name)
