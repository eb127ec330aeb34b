"""The caller of the current request, stored before its handler runs."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from lakewright_sandbox.lakekeeper.protocol.identities import Subject
from lakewright_sandbox.lakekeeper.protocol.requests import TokenPrincipal


@dataclass(frozen=True)
class ActingCaller:
    """The user of a request, and the role that the user assumes. An anonymous caller has neither."""

    user: TokenPrincipal | None = None
    role: str | None = None

    @property
    def subject(self) -> Subject | None:
        """Return the assumed role, or the user; None for an anonymous caller."""
        if self.role is not None:
            return Subject("role", self.role)
        return Subject("user", self.user.id) if self.user else None


NOBODY = ActingCaller()
_ACTOR: ContextVar[ActingCaller] = ContextVar("actor", default=NOBODY)


def actor() -> ActingCaller:
    """Return the caller of the current request."""
    return _ACTOR.get()


def act_as(caller: ActingCaller) -> None:
    """Set the caller of the current request."""
    _ACTOR.set(caller)
