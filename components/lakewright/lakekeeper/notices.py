"""Warnings from within a provider's process, where Pulumi's own log does not work: engines show its stderr."""

import sys


def warn(message: str) -> None:
    """Tell something that is no error. Never a secret."""
    print(f"warning: {message}", file=sys.stderr, flush=True)
