"""Shared fixtures: a real sandbox, and rules for tests that need the Pulumi CLI or a JVM."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import shutil
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

import hypothesis
import pytest
from lakewright_sandbox import lifecycle
from lakewright_sandbox.lakekeeper.protocol.versions import RELEASED, Version, is_at_least
from lakewright_sandbox.runtime.state import Sandbox

from tests import class_archive
from tests.command_server import OWN_PROCESSES
from tests.python_server import PYTHON, start_python_server
from tests.real_servers import RealServers
from tests.shared_parts import share_parts

IS_LONG_FORM = bool(os.environ.get("LAKEWRIGHT_FULL"))
NEEDS_PULUMI = "needs the Pulumi CLI, which is not on the PATH"

# Variables that a shell or a container sets must not be what makes the product work.
for name in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", PYTHON):
    os.environ.pop(name, None)

if not os.environ.get(OWN_PROCESSES):
    share_parts()
# The optimizing compiler would double the processor time of short JVMs; long forms have long JVMs.
COMPILER = "" if IS_LONG_FORM else "-XX:TieredStopAtLevel=1 "
os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1")
os.environ.setdefault("SPARK_SUBMIT_OPTS", COMPILER + class_archive.java_options())

# Hundreds of thousands of objects are created while tests are collected, and hardly any becomes garbage.
gc.set_threshold(50_000, 20, 20)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background commands in this way; programs under test must receive Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    # So does nohup with the end of the terminal.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# The same examples in every run, so that no change fails by chance. `make test-all` tries new ones.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.register_profile("new", deadline=None)
hypothesis.settings.load_profile("new" if IS_LONG_FORM else "same")


ASKED = os.environ.get("TEST_LAKEKEEPER_VERSION")
"""The Lakekeeper version that the version matrix of `make test-all` requests."""
PLAYED = cast(Version, ASKED or RELEASED)

STAND_IN_ONLY = {
    "light_endpoint": "counts calls of the stand-in, or has it play faults",
    "openfga_endpoint": "plays users by their names",
    "authorizer_server": "plays users by their names",
    "servers": "plays every version",
    "attached_providers": "attaches the sandbox's providers",
    "faulty": "strikes the ways to the servers",
    "openfga": "plays users by their names",
    "fault_server": "has the stand-in play faults at every call",
    "run_proxy": "puts faults between the engine and the sandbox",
}
"""Fixtures that real servers cannot provide, and why."""

REAL = RealServers.from_environ()
"""The user's servers, under `make test-real`."""

LEFT_BEHIND: list[str] = []
"""Objects that a run on real servers could not remove."""


@pytest.fixture(scope="session")
def real() -> Iterator[RealServers | None]:
    """Return the user's servers under `make test-real`, else None."""
    if REAL is None:
        yield None
        return
    REAL.begin()
    yield REAL


@pytest.fixture(scope="session")
def sandbox_version(request: pytest.FixtureRequest) -> Version:
    """Return the Lakekeeper version of the sandbox.

    It is the newest release, unless the version matrix or a test marked `since` requests another one.
    """
    return getattr(request, "param", PLAYED)


@pytest.fixture(scope="session")
def sandbox(
    tmp_path_factory: pytest.TempPathFactory, real: RealServers | None, sandbox_version: Version
) -> Iterator[Sandbox]:
    """Start one sandbox for all tests of a worker, with its own directory and ports. Tests make their own buckets.

    Under `make test-real` it describes the user's servers in the same shape.
    """
    directory = tmp_path_factory.mktemp("sandbox")
    if real:
        yield real.as_sandbox(directory)
        return
    yield lifecycle.bring_up(directory, lifecycle.SandboxOptions(version=sandbox_version)).sandbox
    lifecycle.down(directory)


@pytest.fixture(autouse=True)
def _isolate_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the user's keys and stack from the tests."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "LAKEWRIGHT_", "PYICEBERG_"))]:
        if name not in {"LAKEWRIGHT_IVY", "LAKEWRIGHT_REQUIRE_PULUMI"}:
            monkeypatch.delenv(name)


@pytest.fixture
def forked_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the Python processes of the Pulumi CLI as forks of one process."""
    monkeypatch.setenv(PYTHON, str(start_python_server()))


@pytest.fixture(autouse=True)
def _fork_python(request: pytest.FixtureRequest) -> None:
    """Run them as forks in each test of the Pulumi CLI, but for the long form."""
    if request.node.get_closest_marker("pulumi_cli") and not IS_LONG_FORM and not os.environ.get(OWN_PROCESSES):
        request.getfixturevalue("forked_python")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name bytes by their argument, so that all workers collect the same names.

    Compressed bytes contain the time at which they were made.
    """
    return argname if isinstance(val, bytes) else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that is marked `since` a sandbox of that version, unless the run requests a version."""
    since = metafunc.definition.get_closest_marker("since")
    if since and not ASKED and not REAL and "sandbox_version" in metafunc.fixturenames:
        metafunc.parametrize("sandbox_version", since.args, indirect=True, scope="session")


def pytest_collection_finish() -> None:
    """Keep the garbage collector away from modules and tests, which live as long as the worker."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    no_pulumi = shutil.which("pulumi") is None
    on_real_servers = REAL is not None
    played = REAL.version if REAL else PLAYED
    spark_files = {_get_file(item) for item in items if item.get_closest_marker("spark")}
    for item in items:
        since = item.get_closest_marker("since")
        if since and (ASKED or REAL) and not is_at_least(played, since.args[0]):
            item.add_marker(pytest.mark.skip(reason=f"needs Lakekeeper {since.args[0]} or newer"))
        if since and not ASKED and not is_at_least(PLAYED, since.args[0]):
            # Group these tests in one worker, so that the second sandbox starts once.
            item.add_marker(pytest.mark.xdist_group(f"lakekeeper-{since.args[0]}"))
        if ASKED and (reason := _matrix_skip_reason(item)):
            item.add_marker(pytest.mark.skip(reason=reason))
        if on_real_servers and (reason := _real_servers_skip_reason(item)):
            item.add_marker(pytest.mark.skip(reason=reason))
        shares_fixtures = _shares_fixtures(item)
        if item.get_closest_marker("spark") or (shares_fixtures and _get_file(item) in spark_files):
            # Each group has one JVM at a time: of its worker, or of a command.
            item.add_marker(pytest.mark.xdist_group(_get_spark_group(item)))
        elif shares_fixtures and not item.get_closest_marker("xdist_group"):
            # Otherwise each worker would set up the fixtures of the module.
            item.add_marker(pytest.mark.xdist_group(_get_file(item)))
        if no_pulumi and item.get_closest_marker("pulumi_cli"):
            item.add_marker(pytest.mark.skip(reason=NEEDS_PULUMI))


STARTING_JVMS = (
    "tests/spark/run/",
    "tests/spark/cli/",
    "tests/spark/catalog/test_matrix.py",
    "tests/spark/test_demo.py",
)
"""Spark tests whose commands start a JVM each, one at a time."""


def _get_spark_group(item: pytest.Item) -> str:
    if item.nodeid.startswith(STARTING_JVMS):
        return "spark-commands"
    return "spark-maintenance" if item.nodeid.startswith("tests/spark/maintenance/") else "spark"


NOT_IN_THE_MATRIX = {
    "servers": "plays every version itself",
    "authorizer_server": "plays 0.14 always, for its tags",
    "fault_server": "plays 0.14 always, for its grants",
}
"""Fixtures that do not depend on the version that the matrix requests, and why."""


def _matrix_skip_reason(item: pytest.Item) -> str | None:
    names: list[str] = getattr(item, "fixturenames", [])
    return next((NOT_IN_THE_MATRIX[name] for name in names if name in NOT_IN_THE_MATRIX), None)


BESIDE_THE_PROJECT = "makes buckets or servers of its own beside the suite's project"
_PORTABLE_REASONS = {STAND_IN_ONLY["light_endpoint"], BESIDE_THE_PROJECT}
"""Reasons that do not hold for tests marked `any_server`."""


def _real_servers_skip_reason(item: pytest.Item) -> str | None:
    names: list[str] = getattr(item, "fixturenames", [])
    reason = next((STAND_IN_ONLY[name] for name in names if name in STAND_IN_ONLY), None)
    if reason is None and _starts_a_sandbox(item):
        reason = "brings up a sandbox of its own"
    if reason is None and "spark" in item.path.parts and _bypasses_the_project(item):
        reason = BESIDE_THE_PROJECT
    if item.get_closest_marker("any_server"):
        reason = None if reason in _PORTABLE_REASONS else reason
    marker = item.get_closest_marker("stand_in")
    reason = str(marker.args[0]) if marker else reason
    return f"not on real servers: {reason}" if reason else None


def _get_file(item: pytest.Item) -> str:
    """Return the path of a test's file, such as `tests/unit/test_times.py`."""
    return item.nodeid.partition("::")[0]


def _shares_fixtures(item: pytest.Item) -> bool:
    """Return whether a test uses a fixture that the tests of its module or folder share."""
    info: Any = getattr(item, "_fixtureinfo", None)
    return info is not None and any(
        definitions[-1].scope in {"class", "module", "package"} for definitions in info.name2fixturedefs.values()
    )


def _starts_a_sandbox(item: pytest.Item) -> bool:
    info: Any = getattr(item, "_fixtureinfo", None)
    return info is not None and len(info.name2fixturedefs.get("sandbox", ())) > 1


PORTABLE = frozenset({"project", "tenant", "create_table"})
"""Fixtures of the Spark suite that use the sandbox and also work with the user's servers."""


def _bypasses_the_project(item: pytest.Item) -> bool:
    info: Any = getattr(item, "_fixtureinfo", None)
    if info is None:
        return False
    sandbox_fixtures = {
        name for name, definitions in info.name2fixturedefs.items() if "sandbox" in definitions[-1].argnames
    }
    return "sandbox" in info.argnames or bool(sandbox_fixtures - PORTABLE)


def pytest_sessionstart() -> None:
    if os.environ.get("LAKEWRIGHT_REQUIRE_PULUMI") and shutil.which("pulumi") is None:
        raise pytest.UsageError("LAKEWRIGHT_REQUIRE_PULUMI is set, and the Pulumi CLI is not on the PATH: install it")


def pytest_sessionfinish(session: pytest.Session) -> None:
    if REAL and REAL.begun:  # Clean up here: the end of a fixture counts as the last test's time.
        LEFT_BEHIND.extend(REAL.clean_up())
    if LEFT_BEHIND and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if not hasattr(session.config, "workerinput"):
        # A thread that never ends would keep the process, and `make` with it.
        exit_guard = threading.Timer(SECONDS_TO_EXIT, _exit_at_once, [session])
        exit_guard.daemon = True
        exit_guard.start()


SECONDS_TO_EXIT = 120


def _exit_at_once(session: pytest.Session) -> None:
    os.write(2, f"pytest did not exit within {SECONDS_TO_EXIT} s after its last test; its threads:\n".encode())
    faulthandler.dump_traceback(file=2)
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    os._exit(int(session.exitstatus))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reasons[str(report.longrepr[2]).removeprefix("Skipped: ")] += 1
    if reasons:
        terminalreporter.section("skipped, by reason")
        for reason, count in reasons.most_common():
            terminalreporter.line(f"{count} {reason}")
    if LEFT_BEHIND:
        terminalreporter.section("left behind on the servers: remove it by hand")
        for line in LEFT_BEHIND:
            terminalreporter.line(line)
