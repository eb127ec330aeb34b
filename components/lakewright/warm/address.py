"""The address of a command's warm process, and the facts that both must have in common.

Imported at every start of `lakewright`, so it imports only modules that Python has already or loads in a millisecond.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys

from lakewright.project_files import PROJECT_FILES

SWITCH = "LAKEWRIGHT_WARM"
IDLE = "LAKEWRIGHT_WARM_IDLE"
FOLDER = "LAKEWRIGHT_WARM_FOLDER"
"""Names the folder of sockets. `lakewright fleet` sets it for its commands where no other warm process runs."""
OPTION = "--no-warm"
VERBS = ("preview", "up", "refresh", "destroy", "drift", "verify", "config", "check")
"""Commands that a warm process runs: the first word of the command line."""

_OFF = ("0", "off", "no", "false")
_UNATTENDED = ("CI", "TF_BUILD", "JENKINS_URL", "PYTEST_CURRENT_TEST")
"""Variables of CI services and of pytest: no user waits there, and a remaining process would be in the way."""

_INTERPRETER_PREFIXES = ("PYTHON", "LC_", "LD_", "GRPC_", "OPENSSL_", "SSL_")
_INTERPRETER_NAMES = ("LANG", "LANGUAGE", "TZ", IDLE, "KUBECONFIG")
"""KUBECONFIG is among them because the client of Kubernetes reads it once, when it is imported."""
_LOCATION_NAMES = ("HOME", "PATH", "USER", "LOGNAME", "TEMP", "TMP", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
_RIGHTS = (b"Uid", b"Gid", b"Groups", b"NoNewPrivs", b"Seccomp", b"CapInh", b"CapPrm", b"CapEff", b"CapBnd", b"CapAmb")


class Address:
    """The files of one warm process."""

    def __init__(self, folder: str, name: str, root: str) -> None:
        """Name the files.

        Args:
            folder: The user's folder of sockets.
            name: Prefix of the files' names.
            root: The project's folder.
        """
        self.root = root
        """The project's folder."""
        base = os.path.join(folder, name)
        self.base = base
        self.socket = base + ".socket"
        self.lock = base + ".lock"
        self.log = base + ".log"
        self.modules = base + ".modules"
        """Names of modules that earlier commands imported, one a line."""


def find_address(arguments: list[str]) -> Address | None:
    """Return the address for a command; None for a command that runs without a warm process."""
    if not arguments or arguments[0] not in VERBS or OPTION in arguments or not is_enabled():
        return None
    if sys.platform != "linux" or sys.gettrace() is not None:
        return None
    root = _find_project_root(arguments)
    folder = make_socket_folder()
    return Address(folder, _compute_key(root), root) if root and folder else None


def is_enabled() -> bool:
    """Return whether LAKEWRIGHT_WARM allows a warm process. Unset, it does except in CI and under pytest."""
    switch = os.environ.get(SWITCH, "")
    if switch:
        return switch.lower() not in _OFF
    return not any(os.environ.get(name) for name in _UNATTENDED)


def select_environment() -> dict[str, str]:
    """Return the variables that the warm process itself starts with: no secret is among them."""
    return {name: value for name, value in os.environ.items() if name in _LOCATION_NAMES or _is_of_interpreter(name)}


def make_socket_folder() -> str:
    """Return the folder of mode 0700 that holds this user's sockets; empty where no such folder can exist."""
    uid = os.geteuid()
    if custom_folder := os.environ.get(FOLDER, ""):
        return custom_folder if _is_private(custom_folder, uid) and len(custom_folder) < 60 else ""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = os.path.join(runtime, "lakewright") if runtime and _is_private(runtime, uid) else f"/tmp/lakewright-{uid}"  # noqa: S108 - checked to be this user's alone
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    except OSError:
        return ""
    return folder if _is_private(folder, uid) and len(folder) < 60 else ""


def _is_private(folder: str, uid: int) -> bool:
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == uid and not stat.S_IMODE(status.st_mode) & 0o077


def _find_project_root(arguments: list[str]) -> str:
    """Return the nearest folder with Pulumi.yaml, from `-C` or the working directory upwards; empty if none has it."""
    folder = os.path.realpath(_parse_directory(arguments))
    while True:
        if any(os.path.isfile(os.path.join(folder, name)) for name in PROJECT_FILES):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent


def _parse_directory(arguments: list[str]) -> str:
    directory = "."
    for number, word in enumerate(arguments):
        if word in ("-C", "--cwd"):
            directory = arguments[number + 1] if number + 1 < len(arguments) else directory
        elif word.startswith("--cwd="):
            directory = word.partition("=")[2]
        elif word.startswith("-C"):
            directory = word[2:]
    return directory


def _is_of_interpreter(name: str) -> bool:
    return name in _INTERPRETER_NAMES or name.startswith(_INTERPRETER_PREFIXES)


def _compute_key(root: str) -> str:
    """Return a name made of interpreter, user, rights, limits and namespaces, which a command cannot take along."""
    environment = sorted(f"{name}={value}" for name, value in os.environ.items() if _is_of_interpreter(name))
    facts = (
        root,
        sys.executable,
        sys.prefix,
        sys.version,
        tuple(sys.flags),
        sys.warnoptions,
        sys.path[1:],
        environment,
        os.getresuid(),
        os.getresgid(),
        os.getpriority(os.PRIO_PROCESS, 0),
        [line for line in _read("/proc/self/status").splitlines() if line.partition(b":")[0] in _RIGHTS],
        _read("/proc/self/limits"),
        _read("/proc/self/cgroup"),
        [os.readlink(f"/proc/self/ns/{name}") for name in _NAMESPACES],
    )
    return hashlib.sha256(repr(facts).encode("utf-8", "surrogateescape")).hexdigest()[:24]


def _read(file: str) -> bytes:
    with open(file, "rb") as stream:
        return stream.read()
