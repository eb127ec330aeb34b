"""Run a command with files at a pod's mount paths. Started by `unshare --mount`; argument: a JSON file, see `main`.

The new root has links to the machine's own folders, except where a path of the pod lies, and cannot be written to.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

HOST = ".host"


def link_around(root: Path, targets: list[str]) -> None:
    """Make folders for the targets below the root, and links to the machine's files beside them."""
    folders = {str(parent) for target in targets for parent in PurePosixPath(target).parents}
    for folder in sorted(folders):
        below = root / folder.lstrip("/")
        below.mkdir(parents=True, exist_ok=True)
        for path in Path(folder).iterdir() if Path(folder).is_dir() else []:
            if str(path) not in folders and str(path) not in targets:
                (below / path.name).symlink_to(f"/{HOST}{path}")
    for target in targets:
        (root / target.lstrip("/")).mkdir(parents=True, exist_ok=True)


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def change_user(security: dict[str, Any]) -> None:
    """Give up the rights of root for the user and groups of a pod. Its output remains writable, as with runc."""
    user, group, volume_group = (security[key] for key in ("runAsUser", "runAsGroup", "fsGroup"))
    for stream in (sys.stdout, sys.stderr):
        os.fchown(stream.fileno(), user, group)
    os.setgroups([volume_group])
    os.setgid(group)
    os.setuid(user)


def main(file: str) -> None:
    """Replace this process by `command` with `environment`, with each folder of `mounts` at its path.

    Folders of `image` that a mount hides, such as a checkout below /tmp, are mounted into it. The command runs as the
    user of `security`, the pod's security context, unless it is null.
    """
    pod = json.loads(Path(file).read_text())
    root, mounts = Path(pod["root"]), pod["mounts"]
    mount("-t", "tmpfs", "tmpfs", str(root))
    (root / HOST).mkdir()
    mount("--rbind", "/", str(root / HOST))
    paths = sorted(mounts)
    link_around(root, paths)
    for path in paths:
        below = str(root / path.lstrip("/"))
        mount("--bind", mounts[path]["folder"], below)
        if mounts[path]["read_only"]:
            mount("-o", "remount,bind,ro", below)
    for folder in pod["image"]:
        if any(PurePosixPath(folder).is_relative_to(path) for path in paths):
            below = root / folder.lstrip("/")
            below.mkdir(parents=True, exist_ok=True)
            mount("--bind", folder, str(below))
    mount("-o", "remount,ro", str(root))
    os.chroot(root)
    os.chdir("/")
    if security := pod["security"]:
        change_user(security)
    os.environ.clear()
    os.environ.update(pod["environment"])
    os.execvp(pod["command"][0], pod["command"])


if __name__ == "__main__":
    main(sys.argv[1])
