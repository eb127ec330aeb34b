"""Addresses that only processes of this user can reach: Unix sockets in a folder of mode 0700.

A port of the loopback interface accepts calls of every user of the machine, and Pulumi's protocols have no
authentication: a caller could read decrypted secrets or run a pickled provider.
"""

from __future__ import annotations

import itertools
import re
import tempfile
from pathlib import Path
from typing import Self

_PLAIN = re.compile(r"[A-Za-z0-9/._-]{1,70}")
"""Folders whose sockets need no escapes in an address and fit into the 104 bytes of a socket path."""

_SHORT = "/tmp"  # noqa: S108 - a new folder in it is created for this user only


class SocketFolder:
    """The folder with the sockets of a run, for the time of a `with` block."""

    def __init__(self) -> None:
        """Create the folder."""
        usual = tempfile.gettempdir()
        self._folder = tempfile.TemporaryDirectory(
            prefix="lakewright-", dir=usual if _PLAIN.fullmatch(usual) else _SHORT, ignore_cleanup_errors=True
        )
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        """Return the folder."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the folder."""
        self._folder.cleanup()

    def new_address(self, name: str) -> str:
        """Return a new gRPC address, `unix:PATH`."""
        return f"unix:{self.new_file(name)}"

    def new_file(self, name: str) -> Path:
        """Return the path of a new file that only this user can read."""
        return Path(self._folder.name) / f"{name}-{next(self._numbers)}"
