"""SIGTERM and SIGINT request a runner to stop."""

from __future__ import annotations

import os
import signal

import pytest
from lakewright_spark.scheduler.supervisor import handle_signals


@pytest.mark.parametrize("wish", [signal.SIGTERM, signal.SIGINT])
def test_first_signal_finishes_and_second_cancels(wish: signal.Signals) -> None:
    before = signal.getsignal(wish)
    with handle_signals() as heard:
        signal.signal(wish, signal.default_int_handler)  # as Spark does with SIGINT
        heard.listen()
        os.kill(os.getpid(), wish)
        assert (heard.ended.is_set(), heard.at_once.is_set()) == (True, False)
        os.kill(os.getpid(), wish)
        assert heard.at_once.is_set()
    assert signal.getsignal(wish) is before
