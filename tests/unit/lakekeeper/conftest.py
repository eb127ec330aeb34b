"""Calls to servers that do not exist fail after short waits."""

import pytest
from lakewright.http.retry import RetryPolicy


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have policies without waits of their own retry at once: the waits are the question of `test_client.py`."""
    defaults = {"attempts": RetryPolicy.attempts, "first_wait": 0.001, "longest_wait": 0.001}
    monkeypatch.setattr(RetryPolicy.__init__, "__defaults__", tuple(defaults.values()))
