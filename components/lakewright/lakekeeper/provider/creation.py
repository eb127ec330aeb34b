"""Creating an object once, although an answer may get lost: where the object that is there now came from."""

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

LOOKS = 3
"""How often a create whose answer got lost is looked for and repeated."""


class Origin(Enum):
    """Origin of an object, as the answer to its create shows it."""

    CREATED = "created"
    """The server confirmed this call's create."""
    UNCONFIRMED = "unconfirmed"
    """This call sent a create and got no answer; the object was found afterwards."""
    EXISTED = "existed"
    """The server refused the create, because the object exists."""


def created_or_found(create: Callable[[], T], look: Callable[[], T | None]) -> tuple[T, Origin]:
    """Create an object, or find what is there.

    A create whose answer got lost is never sent again before a look at what is there.
    """
    unconfirmed = False
    for tries_left in reversed(range(LOOKS)):
        try:
            return create(), Origin.CREATED
        except UnconfirmedError as unanswered:
            unconfirmed = True
            if (found := _look_for_own(look, unanswered)) is not None:
                return found, Origin.UNCONFIRMED
            if not tries_left:
                raise _perhaps_made(unanswered) from None
        except ResponseTimeoutError as unanswered:
            if (found := _look_for_own(look, unanswered)) is not None:
                return found, Origin.UNCONFIRMED
            raise _perhaps_made(unanswered) from None
        except AlreadyExistsError as refused:
            sent_before = unconfirmed or refused.after_retry
            if (found := (_look_for_own if sent_before else looked)(look, refused)) is not None:
                return found, Origin.UNCONFIRMED if sent_before else Origin.EXISTED
            raise
        except RefusedError as refused:
            if refused.status not in {429, 503}:
                raise
            # A gateway may give these answers after the server applied the request.
            if (found := _look_for_own(look, refused)) is not None:
                return found, Origin.UNCONFIRMED
            raise
    raise AssertionError("the last try returns or raises")


def looked(look: Callable[[], T | None], after: LakekeeperError) -> T | None:
    """Return what is there. If the look fails too, its error is added to the first one."""
    try:
        return look()
    except LakekeeperError as blind:
        after.add(f"What is there now could not be seen either: {blind}")
        raise after from None


@contextmanager
def finishing(what: str, origin: Origin, *, adopts: bool) -> Generator[None]:
    """Report in an error of the calls after a create that the object exists, and what the next `up` needs.

    The engine drops a creation that fails, so its state does not show that this stack made the object.

    Args:
        what: The object, for messages.
        origin: Where it came from. Nothing is said of an object that existed: it may be another stack's.
        adopts: Whether the declaration has `adopt` already.
    """
    try:
        yield
    except NotOwnedError:
        raise
    except LakekeeperError as error:
        if origin is not Origin.EXISTED and not adopts:
            error.add(f"{what} exists now, unfinished: the next `up` needs `adopt` to take it over.")
        raise


def _look_for_own(look: Callable[[], T | None], after: LakekeeperError) -> T | None:
    try:
        return looked(look, after)
    except LakekeeperError as blind:
        blind.add("If the object was created, the next `up` needs `adopt` to take it over.")
        raise


def _perhaps_made(error: LakekeeperError) -> LakekeeperError:
    error.add("The object was not found yet; if it appears later, the next `up` needs `adopt` to take it over.")
    return error
