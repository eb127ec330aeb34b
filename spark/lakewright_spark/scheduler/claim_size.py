"""ClaimSize: how many tables a runner claims together, since a claim costs a commit."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

SHORT_SECONDS, LONG_SECONDS = 1.5, 10.0
"""Times between two claims from which on more, or fewer, tables are claimed together."""
MAX_GROWTH = 4
"""Most multiple of the look-ahead that is claimed together."""


@dataclass
class ClaimSize:
    """Number of tables to claim before a worker is free for them."""

    look_ahead: int
    """Number when jobs are long."""
    _batch: int = field(init=False)
    _claimed_at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        """Begin with the look-ahead."""
        self._batch = self.look_ahead

    def compute_room(self, ready: int, waiting: int, runners: int) -> int:
        """Return how many tables to claim now: none while there are enough, few if few are left for all runners.

        >>> size = ClaimSize(8)
        >>> [size.compute_room(ready, 100, runners=4) for ready in (0, 4, 5)]
        [8, 4, 0]
        >>> [size.compute_room(0, waiting, runners=4) for waiting in (48, 16, 2)]
        [6, 4, 4]
        """
        if not waiting:
            return self.look_ahead - ready
        most = min(self._batch, max(self.look_ahead // 2, 1, waiting // (2 * runners)))
        return 0 if ready > most // 2 else most - ready

    def adapt(self) -> None:
        """Claim more tables together from now on if the last claim did not last long, fewer if it lasted long."""
        seconds = time.monotonic() - self._claimed_at
        if seconds < SHORT_SECONDS:
            self._batch = min(2 * self._batch, MAX_GROWTH * self.look_ahead)
        elif seconds > LONG_SECONDS:
            self._batch = max(self._batch // 2, self.look_ahead)
        self._claimed_at += seconds
