"""Signals reach a run whose main thread waits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest
from lakewright_engine.processes.interrupts import Interrupts

WAITS = """
import os, signal, threading
from lakewright_engine.processes.interrupts import Interrupts

arrived = threading.Event()
with Interrupts() as interrupts:
    interrupts.call_at_first(arrived.set)
    # The system gives the signal to another thread, so that it does not wake this one.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    os.kill(os.getpid(), signal.SIGTERM)
    arrived.wait()
    print("arrived")
"""


def test_signal_arrives_while_the_main_thread_waits_for_a_lock() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WAITS], check=False, capture_output=True, text=True, timeout=60
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "arrived\n", "")


def test_signal_before_the_call_is_not_lost() -> None:
    arrived = threading.Event()
    with Interrupts() as interrupts:
        os.kill(os.getpid(), signal.SIGTERM)
        interrupts.call_at_first(arrived.set)
        assert arrived.wait(60)


def test_second_signal_ends_the_run_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    arrived = threading.Event()
    with Interrupts() as interrupts:
        interrupts.call_at_first(arrived.set)
        os.kill(os.getpid(), signal.SIGTERM)
        assert arrived.wait(60)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    assert capfd.readouterr().err == ""


def test_handlers_and_descriptors_are_restored() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    descriptors = len(os.listdir("/proc/self/fd"))

    with Interrupts():
        assert signal.getsignal(signal.SIGTERM) not in before

    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before
    assert signal.set_wakeup_fd(-1) == -1
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_other_signals_are_no_interrupt() -> None:
    arrived = threading.Event()
    with Interrupts() as interrupts:
        interrupts.call_at_first(arrived.set)
        before = signal.signal(signal.SIGUSR1, lambda *_: None)
        try:
            os.kill(os.getpid(), signal.SIGUSR1)
            assert not arrived.wait(1)
        finally:
            signal.signal(signal.SIGUSR1, before)
