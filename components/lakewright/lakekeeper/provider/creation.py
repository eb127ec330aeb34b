"""Create an object once although a response may be lost, and report the origin of the object."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import Enum
from typing import TypeVar

from lakewright.lakekeeper.api.connection.errors import (
    AlreadyExistsError,
    LakekeeperError,
    RefusedError,
    ResponseTimeoutError,
    UnconfirmedError,
)
from lakewright.lakekeeper.provider.errors import NotOwnedError

T = TypeVar("T")

MAX_ATTEMPTS = 3
"""Attempts to create an object whose responses are lost, each followed by a lookup."""


class Origin(Enum):
    """Origin of an object, according to the response to its create request."""

    CREATED = "created"
    """The server confirmed the create request of this call."""
    UNCONFIRMED = "unconfirmed"
    """This call sent a create request and got no response. The object was found afterwards."""
    EXISTED = "existed"
    """The server refused the create request, because the object exists."""


def create_or_find(create: Callable[[], T], look: Callable[[], T | None]) -> tuple[T, Origin]:
    """Create an object, or find an existing object.

    A create request without a response is sent again only after a lookup.
    """
    unconfirmed = False
    for tries_left in reversed(range(MAX_ATTEMPTS)):
        try:
            return create(), Origin.CREATED
        except UnconfirmedError as unanswered:
            unconfirmed = True
            if (existing := _look_for_own(look, unanswered)) is not None:
                return existing, Origin.UNCONFIRMED
            if not tries_left:
                raise _perhaps_made(unanswered) from None
        except ResponseTimeoutError as unanswered:
            if (existing := _look_for_own(look, unanswered)) is not None:
                return existing, Origin.UNCONFIRMED
            raise _perhaps_made(unanswered) from None
        except AlreadyExistsError as refused:
            sent_before = unconfirmed or refused.after_retry
            if (existing := (_look_for_own if sent_before else look_up_existing)(look, refused)) is not None:
                return existing, Origin.UNCONFIRMED if sent_before else Origin.EXISTED
            raise
        except RefusedError as refused:
            if refused.status not in {429, 503}:
                raise
            # A gateway may send these responses after the server applied the request.
            if (existing := _look_for_own(look, refused)) is not None:
                return existing, Origin.UNCONFIRMED
            raise
    raise AssertionError("the last try returns or raises")


def look_up_existing(look: Callable[[], T | None], after: LakekeeperError) -> T | None:
    """Return the existing object. If the lookup fails too, add its error to the first error."""
    try:
        return look()
    except LakekeeperError as blind:
        after.add(f"The object could not be looked up either: {blind}")
        raise after from None


@contextmanager
def explain_unfinished(title: str, origin: Origin, *, adopts: bool) -> Generator[None]:
    """Add to an error after a create request that the object exists, and what the next `up` needs.

    The engine drops a creation that fails, so its state does not show that this stack made the object.

    Args:
        title: The object, for messages.
        origin: Origin of the object. The error of an object that existed is unchanged: another stack may own it.
        adopts: Whether the declaration has `adopt`.
    """
    try:
        yield
    except NotOwnedError:
        raise
    except LakekeeperError as error:
        if origin is not Origin.EXISTED and not adopts:
            error.add(f"{title} exists now, unfinished: the next `up` needs `adopt` to take it over.")
        raise


def _look_for_own(look: Callable[[], T | None], after: LakekeeperError) -> T | None:
    try:
        return look_up_existing(look, after)
    except LakekeeperError as blind:
        blind.add("If the object was created, the next `up` needs `adopt` to take it over.")
        raise


def _perhaps_made(error: LakekeeperError) -> LakekeeperError:
    error.add("The object was not found yet; if it appears later, the next `up` needs `adopt` to take it over.")
    return error
