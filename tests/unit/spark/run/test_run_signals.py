"""Signals that end a run: SIGTERM, SIGINT and SIGHUP, unless SIGHUP is ignored."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from lakewright_spark.run.launch import _signals

SetHandler = Callable[[Any], None]


@pytest.fixture
def set_hangup_handler() -> Iterator[SetHandler]:
    """Return a function that sets what a closed terminal does; the test's process must not end."""
    before = signal.getsignal(signal.SIGHUP)
    yield lambda handler: signal.signal(signal.SIGHUP, handler) and None
    signal.signal(signal.SIGHUP, before)


def test_closed_terminal_ends_a_run(set_hangup_handler: SetHandler) -> None:
    set_hangup_handler(lambda *_: None)

    with _signals() as ended:
        signal.raise_signal(signal.SIGHUP)

        assert ended.wait(5)


def test_run_under_nohup_survives_its_terminal(set_hangup_handler: SetHandler) -> None:
    set_hangup_handler(signal.SIG_IGN)

    with _signals() as ended:
        signal.raise_signal(signal.SIGHUP)

        assert not ended.is_set()
