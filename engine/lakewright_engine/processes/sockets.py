"""Addresses that only this user's processes can reach: Unix sockets in a folder of mode 0700.

A port of the loopback interface takes calls of every user of the machine, and Pulumi's protocols ask nobody who they
are: a caller would read decrypted secrets, or have a pickled provider run.
"""

from __future__ import annotations

import itertools
import re
import tempfile
from pathlib import Path
from typing import Self

_PLAIN = re.compile(r"[A-Za-z0-9/._-]{1,70}")
"""Folders whose sockets need no escapes in an address, and fit into the 104 bytes that systems have for a path."""

_SHORT = "/tmp"  # noqa: S108 - the folder in it is made anew, for this user alone


class SocketFolder:
    """The sockets of one run. Its `with` block makes and removes the folder."""

    def __init__(self) -> None:
        usual = tempfile.gettempdir()
        self._folder = tempfile.TemporaryDirectory(
            prefix="lakewright-", dir=usual if _PLAIN.fullmatch(usual) else _SHORT, ignore_cleanup_errors=True
        )
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def new_address(self, name: str) -> str:
        """Return a gRPC address, `unix:PATH`, that nobody listens on yet."""
        return f"unix:{Path(self._folder.name) / f'{name}-{next(self._numbers)}'}"
