"""What look-ups share: reaching a server from a program or from anywhere else, and waiting for outputs.

A look-up is a plain function, `get_...(server=..., ...)`, that asks a server and answers with a typed value or raises
a LakekeeperError. Its twin `get_..._output` takes outputs of resources as well and answers with an output, so that a
program that declares things can look others up by them. Secrets are neither taken nor answered: `server` names them by
reference, and they are read at the moment of use. Importing this file does not import Pulumi.
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
"""Address of a server and how to authenticate: `{"endpoint": ..., "auth": {...}}`, secrets by reference."""

NAMED = 10
"""So many names are listed in a message; the rest is counted."""


class LookupResult(BaseModel):
    """Base of what look-ups answer: plain values, `model_dump()` makes a dict of them."""

    model_config = ConfigDict(frozen=True)


def reach(server: Server) -> Client:
    """The client for a server that is new enough. Raises LakekeeperError."""
    return run_context.current().client(_reference(server), _secret)


def as_output(look_up: Callable[..., T]) -> Callable[..., pulumi.Output[T]]:
    """The twin of a look-up: takes outputs for any argument, and for any value within `server`.

    It waits until they are known; in a preview that does not know them yet, its answer is unknown as well.
    """
    signature = inspect.signature(look_up)

    def later(**arguments: Any) -> pulumi.Output[T]:
        import pulumi  # noqa: PLC0415 - takes most of a second, which others do without

        signature.bind(**arguments)  # a wrong name fails here, at the line that has it
        return pulumi.Output.all(**arguments).apply(lambda values: asyncio.to_thread(look_up, **values))

    later.__name__ = later.__qualname__ = f"{look_up.__name__}_output"
    later.__doc__ = f"As `{look_up.__name__}`, for arguments that may be outputs; answers with an output."
    return later


def listed(names: Iterable[str]) -> str:
    """Some names for a message: the first few, and how many more."""
    known = sorted(names)
    more = f" and {len(known) - NAMED} more" if len(known) > NAMED else ""
    return ", ".join(f"`{name}`" for name in known[:NAMED]) + more if known else "none"


def _reference(server: Server) -> ServerRef:
    if isinstance(server, ServerRef):
        return server
    try:
        return ServerRef.model_validate(dict(server))
    except ValidationError as error:
        # Values are left out: one of them may be a secret that stands where a reference belongs.
        found = error.errors(include_url=False, include_context=False, include_input=False)
        reasons = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found)
        raise InvalidLookupError(f"`server` of a look-up is wrong: {reasons}") from None


def _secret(reference: str) -> str:
    return credentials.resolve(reference, _stack_config)


def _stack_config(key: str) -> str | None:
    """The stack's configuration in a running program; elsewhere there is none."""
    if "pulumi" not in sys.modules:
        return None
    import pulumi  # noqa: PLC0415 - has been imported already

    space, _, name = key.rpartition(":")
    return pulumi.Config(space or pulumi.get_project()).get(name)
