"""What every test may use: a real sandbox, and rules for tests that need the Pulumi CLI or a JVM."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator

import hypothesis
import pytest
from lakewright_sandbox import lifecycle
from lakewright_sandbox.state import Sandbox

NEEDS_PULUMI = "needs the Pulumi CLI, which is not on the PATH"

# What happens to be set in a shell or a container must not be what makes the product work.
for name in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"):
    os.environ.pop(name, None)

# The same examples every time, so that nobody's change fails by chance; new ones are looked for by `make test-all`.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.register_profile("new", deadline=None)
hypothesis.settings.load_profile("new" if os.environ.get("LAKEWRIGHT_FULL") else "same")


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One sandbox for all tests of a worker, with a directory and ports of its own. Tests make their own buckets."""
    directory = tmp_path_factory.mktemp("sandbox")
    yield lifecycle.up(directory)
    lifecycle.down(directory)


@pytest.fixture(autouse=True)
def _no_keys_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may see the keys or the stack of whoever runs it."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "LAKEWRIGHT_", "PYICEBERG_"))]:
        if name not in {"LAKEWRIGHT_IVY", "LAKEWRIGHT_REQUIRE_PULUMI"}:
            monkeypatch.delenv(name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    no_pulumi = shutil.which("pulumi") is None
    for item in items:
        if item.get_closest_marker("spark"):
            # One JVM at a time: all of them run in one worker, one after the other.
            item.add_marker(pytest.mark.xdist_group("spark"))
        if no_pulumi and item.get_closest_marker("pulumi_cli"):
            item.add_marker(pytest.mark.skip(reason=NEEDS_PULUMI))


def pytest_sessionstart() -> None:
    if os.environ.get("LAKEWRIGHT_REQUIRE_PULUMI") and shutil.which("pulumi") is None:
        raise pytest.UsageError("LAKEWRIGHT_REQUIRE_PULUMI is set, and the Pulumi CLI is not on the PATH: install it")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reasons[str(report.longrepr[2]).removeprefix("Skipped: ")] += 1
    if reasons:
        terminalreporter.section("skipped, by reason")
        for reason, count in reasons.most_common():
            terminalreporter.line(f"{count} {reason}")
