"""Signals reach a run whose main thread waits."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from lakewright_engine.processes.interrupts import Interrupts
from lakewright_engine.processes.prompt_signals import PromptSignals

PREFACE = """
import os, signal, sys, threading, time
from lakewright_engine.processes.interrupts import Interrupts

main = threading.get_ident()
arrived = threading.Event()
waits = []

def send(*numbers):
    # Another thread gets each signal while the main thread waits for a lock, so that the wait does not end.
    threading.Thread(target=send_to_itself, args=numbers, daemon=True).start()

def send_to_itself(*numbers):
    for number in numbers:
        while not waits or sys._current_frames()[main].f_code.co_name != "wait":
            time.sleep(0.01)
        signal.pthread_kill(threading.get_ident(), number)
        arrived.wait()
"""
FIRST = """
with Interrupts() as interrupts:
    interrupts.call_at_first(arrived.set)
    send(signal.SIGTERM)
    waits.append(True)
    arrived.wait()
    print("arrived")
"""
EARLY = """
with Interrupts() as interrupts:
    os.kill(os.getpid(), signal.SIGTERM)
    interrupts.call_at_first(arrived.set)
    arrived.wait()
    print("arrived")
"""
SECOND = """
try:
    with Interrupts() as interrupts:
        interrupts.call_at_first(arrived.set)
        send(signal.SIGTERM, signal.SIGINT)
        waits.append(True)
        threading.Event().wait()
except KeyboardInterrupt:
    print("ended at once")
"""
OTHERS = """
with Interrupts() as interrupts:
    interrupts.call_at_first(arrived.set)
    signal.signal(signal.SIGUSR1, lambda *_: print("handled"))
    os.kill(os.getpid(), signal.SIGUSR1)
print(arrived.is_set())
"""


@pytest.mark.parametrize(
    ("program", "output"),
    [
        pytest.param(FIRST, "arrived\n", id="first"),
        pytest.param(EARLY, "arrived\n", id="before-the-call"),
        pytest.param(SECOND, "ended at once\n", id="second"),
        pytest.param(OTHERS, "handled\nFalse\n", id="others"),
    ],
)
def test_signals_are_handled_while_the_main_thread_waits(program: str, output: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PREFACE + program], check=False, capture_output=True, text=True, timeout=60
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, output, "")


def count_descriptors() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


def test_handlers_and_descriptors_are_restored() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGURG)
    before = [signal.getsignal(number) for number in numbers]
    reader, writer = socket.socketpair()
    with reader, writer:
        os.set_blocking(writer.fileno(), False)
        signal.set_wakeup_fd(writer.fileno())
        descriptors, threads = count_descriptors(), threading.active_count()

        with Interrupts() as interrupts:
            interrupts.call_at_first(lambda: None)
            assert signal.getsignal(signal.SIGTERM) not in before

        assert [signal.getsignal(number) for number in numbers] == before
        assert (count_descriptors(), threading.active_count()) == (descriptors, threads)
        assert signal.set_wakeup_fd(-1) == writer.fileno()


def test_other_threads_handle_no_signals() -> None:
    before = signal.getsignal(signal.SIGURG)
    handlers: list[object] = []

    def use() -> None:
        with PromptSignals():
            handlers.append(signal.getsignal(signal.SIGURG))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()

    assert handlers == [before]
