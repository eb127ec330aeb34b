"""Files that only this user can read, and that are never half-written, even after a power failure."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from lakewright_engine.processes.process_identity import is_running

_LEFTOVER = ".partial"


def write(file: Path, content: bytes) -> None:
    """Replace a file's content and sync it to the disk.

    A failed write keeps the old content and leaves no other file. The file's mode is 0600, or 0660 in a folder that is
    shared with a group (setgid and writable by the group).
    """
    make_folder(file.parent)
    partial = file.with_name(f"{file.name}.{os.getpid()}{_LEFTOVER}")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
            os.fchmod(stream.fileno(), mode_of_files(file.parent))
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(file)
    except OSError:
        # Free the space on a full disk.
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
    sync_folder(file.parent)


def keep_copy(file: Path, copy: Path) -> None:
    """Keep a file's content under another name. The file may be replaced afterwards, but not modified."""
    partial = copy.with_name(f"{copy.name}.{os.getpid()}{_LEFTOVER}")
    partial.unlink(missing_ok=True)
    try:
        os.link(file, partial)
    except OSError:  # a file system without hard links
        write(copy, file.read_bytes())
        return
    if not _is_shared(copy.parent):
        partial.chmod(0o600)
    partial.replace(copy)
    sync_folder(copy.parent)


def make_folder(folder: Path) -> None:
    """Create a folder of mode 0700 and its parents, if missing, and sync them to the disk."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        if _is_shared(folder.parent):
            folder.chmod(0o2770)
        sync_folder(folder.parent)


def close_to_others(folder: Path) -> None:
    """Remove the permissions of other users from a folder of an earlier release, unless it is shared with a group."""
    with suppress(OSError):
        mode = stat.S_IMODE(folder.stat().st_mode)
        if mode & 0o077 and not _is_shared(folder) and folder.stat().st_uid == os.getuid():
            folder.chmod(0o700)


def remove_tree(folder: Path) -> None:
    """Remove a folder and its content, if it exists."""
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


def remove_leftovers(folder: Path, names: str) -> None:
    """Remove partial files of interrupted writes, except files of running processes.

    Args:
        folder: The folder of the files.
        names: A regular expression that matches their names.
    """
    leftover = re.compile(rf"(?:{names})\.(?P<pid>\d+){re.escape(_LEFTOVER)}")
    for file in folder.glob(f"*{_LEFTOVER}"):
        if (match := leftover.fullmatch(file.name)) and not is_running(int(match["pid"])):
            file.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Sync the entries of a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync a folder. Their server does it.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def mode_of_files(folder: Path) -> int:
    """Return the mode of new files in a folder: 0600, or 0660 in a folder that is shared with a group."""
    return 0o660 if _is_shared(folder) else 0o600


def _is_shared(folder: Path) -> bool:
    mode = folder.stat().st_mode
    return bool(mode & stat.S_ISGID) and bool(mode & stat.S_IWGRP)
