"""Who asks: set once for each request before its handler runs, so that whatever the handler calls can ask for it."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from ..protocol.identities import Subject
from ..protocol.requests import Principal


@dataclass(frozen=True)
class Actor:
    """The user of the request, and the role whose place the user takes for it. Nobody has neither."""

    user: Principal | None = None
    role: str | None = None

    @property
    def subject(self) -> Subject | None:
        if self.role is not None:
            return Subject("role", self.role)
        return Subject("user", self.user.id) if self.user else None


NOBODY = Actor()
_ACTOR: ContextVar[Actor] = ContextVar("actor", default=NOBODY)


def actor() -> Actor:
    return _ACTOR.get()


def act_as(who: Actor) -> None:
    _ACTOR.set(who)
