"""Filter the warnings that Spark and its JVM print on every start; all other output is passed on."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TextIO

_AT = rb"\d\d/\d\d/\d\d \d\d:\d\d:\d\d "
_WARNINGS = re.compile(
    rb"WARNING: Using incubator modules: jdk\.incubator\.vector"
    rb"|WARNING: package sun\.security\.action not in java\.base"
    rb"|Using Spark's default log4j profile: .*"
    rb'|Setting default log level to "\w+"\.'
    rb"|To adjust logging level use sc\.setLogLevel\(newLevel\)\..*"
    rb'|Setting Spark log level to "\w+"\.'
    rb"|" + _AT + rb"WARN Utils: Your hostname, .* resolves to a loopback address: .*"
    rb"|" + _AT + rb"WARN Utils: Set SPARK_LOCAL_IP if you need to bind to another address"
    rb"|" + _AT + rb"WARN NativeCodeLoader: Unable to load native-hadoop library for your platform\.\.\. .*"
)
_END = b"\0end of the command's output\0\n"


def is_startup_warning(line: bytes) -> bool:
    """Return whether a line, without its end, is a warning of every start."""
    return _WARNINGS.fullmatch(line) is not None


@contextmanager
def filter_warnings() -> Generator[None, None, None]:
    """Filter the standard error of this process's children within the block.

    Only file descriptor 2 leads through the filter: Python's own output is written directly.
    """
    original = os.dup(2)
    reading, writing = os.pipe()
    stderr = _open_stream(original) if _writes_to_descriptor_2(sys.stderr) else None
    before = sys.stderr
    thread = threading.Thread(target=_pass_on, args=(reading, original), name="startup-warnings", daemon=True)
    os.dup2(writing, 2)
    os.close(writing)
    sys.stderr = stderr or before
    thread.start()
    try:
        yield
    finally:
        # The marker follows all earlier output. The end of the pipe is not enough: a running child keeps it open.
        os.write(2, _END)
        thread.join()
        os.dup2(original, 2)
        sys.stderr = before
        if stderr:
            stderr.close()
        os.close(original)


def _pass_on(reading: int, original: int) -> None:
    pending = b""
    with open(reading, "rb", buffering=0) as stream:
        while chunk := stream.read(65536):
            *lines, pending = (pending + chunk).splitlines(keepends=True) or [b""]
            if pending.endswith((b"\n", b"\r")):
                lines, pending = [*lines, pending], b""
            for line in lines:
                if line == _END:
                    return
                if line.endswith(_END):
                    os.write(original, line.removesuffix(_END))
                    return
                if not is_startup_warning(line.rstrip(b"\r\n")):
                    os.write(original, line)


def _open_stream(descriptor: int) -> TextIO:
    return os.fdopen(os.dup(descriptor), "w", buffering=1, encoding=sys.stderr.encoding, errors=sys.stderr.errors)


def _writes_to_descriptor_2(stream: TextIO) -> bool:
    with suppress(OSError, ValueError, AttributeError):
        return stream.fileno() == 2
    return False
