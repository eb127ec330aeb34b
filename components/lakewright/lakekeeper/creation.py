"""Creating an object once, although an answer may get lost: where the object that is there now came from."""

from collections.abc import Callable
from enum import Enum
from typing import TypeVar

from lakewright.lakekeeper.api.errors import AlreadyExists, LakekeeperError, TooSlow, Unconfirmed

T = TypeVar("T")

LOOKS = 3
"""How often a create whose answer got lost is looked for and repeated."""


class Origin(Enum):
    """Who made an object, as far as the create call tells."""

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
        except Unconfirmed as unanswered:
            unconfirmed = True
            if (found := looked(look, unanswered)) is not None:
                return found, Origin.UNCONFIRMED
            if not tries_left:
                raise _perhaps_made(unanswered) from None
        except TooSlow as unanswered:
            if (found := looked(look, unanswered)) is not None:
                return found, Origin.UNCONFIRMED
            raise _perhaps_made(unanswered) from None
        except AlreadyExists as refused:
            if (found := looked(look, refused)) is not None:
                return found, Origin.UNCONFIRMED if unconfirmed else Origin.EXISTED
            raise
    raise AssertionError("the last try returns or raises")


def looked(look: Callable[[], T | None], after: LakekeeperError) -> T | None:
    """Return what is there. If the look fails too, its error is added to the first one."""
    try:
        return look()
    except LakekeeperError as blind:
        after.add(f"What is there now could not be seen either: {blind}")
        raise after from None


def _perhaps_made(error: LakekeeperError) -> LakekeeperError:
    error.add("The object was not found yet; if it appears later, the next `up` needs `adopt` to take it over.")
    return error
