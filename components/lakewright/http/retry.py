"""The retry policy for calls to servers."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from lakewright.errors import LakewrightError

if TYPE_CHECKING:
    from tenacity import RetryCallState

T = TypeVar("T")

LONGEST_WAIT = 10.0
"""Maximum wait in seconds; a longer Retry-After is reduced to it."""


class RetryableError(LakewrightError):
    """A failed try that may be repeated. Holds the error to raise after the last try."""

    def __init__(self, error: Exception, after: float | None = None) -> None:
        """Create the error."""
        super().__init__(str(error))
        self.error, self.after = error, after


@dataclass(frozen=True)
class RetryPolicy:
    """The number of tries of a call, and the waits between them in seconds."""

    attempts: int = 5
    first_wait: float = 0.2
    longest_wait: float = 4.0

    def run(self, attempt: Callable[[], T]) -> T:
        """Make a call until it succeeds, raises an error other than RetryableError, or has no tries left."""
        from tenacity import Retrying, retry_if_exception, stop_after_attempt  # noqa: PLC0415 - slow import

        tries = Retrying(
            stop=stop_after_attempt(self.attempts),
            wait=_Backoff(self),
            retry=retry_if_exception(lambda error: isinstance(error, RetryableError)),
            reraise=True,
        )
        try:
            return tries(attempt)
        except RetryableError as last:
            raise last.error from None


class _Backoff:
    """Exponential backoff with jitter, unless the server sent a Retry-After."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy

    def __call__(self, retry_state: RetryCallState) -> float:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        if isinstance(error, RetryableError) and error.after is not None:
            return min(error.after, LONGEST_WAIT)
        ceiling = self._policy.first_wait * 2 ** (retry_state.attempt_number - 1)
        return random.uniform(0.5, 1.0) * min(ceiling, self._policy.longest_wait)  # noqa: S311 - jitter, not cryptography


def retry_until(
    attempt: Callable[[], T], is_retryable: Callable[[BaseException], bool], *, seconds: float, every: float
) -> T:
    """Repeat a call while it raises an expected error and time is left; then raise its last error."""
    from tenacity import Retrying, retry_if_exception, stop_after_delay  # noqa: PLC0415 - slow import

    return Retrying(
        stop=stop_after_delay(seconds),
        wait=lambda state: min(every * 1.5 ** (state.attempt_number - 1), 5.0),
        retry=retry_if_exception(is_retryable),
        reraise=True,
    )(attempt)
