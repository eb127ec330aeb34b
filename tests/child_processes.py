"""Ends of processes that tests start."""

from __future__ import annotations

import subprocess


def stop_process(process: subprocess.Popen[bytes], seconds: float = 30) -> None:
    """End a process, by force if it does not end within some seconds."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
