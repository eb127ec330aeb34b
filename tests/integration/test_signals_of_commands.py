"""Signals reach commands whose main thread waits for a process that they started."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import signal, sys, threading, time
from lakewright.cli.engines.signals import forward_signals

main = threading.get_ident()

forwarded = threading.Event()
waits = []

def send_to_itself():
    # Another thread gets the signal while the main thread waits for a lock, so that the wait does not end.
    while not waits or sys._current_frames()[main].f_code.co_name != "wait":
        time.sleep(0.01)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    while not passed.has_arrived:
        time.sleep(0.01)
    forwarded.set()

with forward_signals() as passed:
    threading.Thread(target=send_to_itself, daemon=True).start()
    waits.append(True)
    forwarded.wait()
    print("forwarded")
"""


def test_waiting_command_forwards_a_signal_to_the_cli() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=False, capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stdout, done.stderr) == (0, "forwarded\n", "")
