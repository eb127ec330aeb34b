"""The commands of getting started and of guides work as written, in one project on one sandbox."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from lakewright.costs.archive_collection import StackArchives
from lakewright.deletions.archive_purging import ArchiveState, ArchiveStatus
from lakewright.fleet.selection import SelectedStack

from tests.command_server import run_command
from tests.fleet_documents import list_restrictions
from tests.page_commands import PrintedCommand, Reader, read_blocks

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
FIRST_TENANT = DOCS / "getting-started" / "first-tenant.md"
INSTALL = "Install"
CLEAN_UP = "Clean up"
RECORDING = bool(os.environ.get("LAKEWRIGHT_RECORD"))
FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
JVM_COMMANDS = ("python job.py", "lakewright-spark")
"""Commands that start a JVM: `make test-long` leaves them out, `make test-docs` runs them."""
GUIDES = ["undrop", "remove-a-tenant", "from-scripts"]

MAKE_DRIFT = """\
import pyarrow as pa
from pyiceberg.catalog import load_catalog

catalog = load_catalog("executions")
catalog.drop_namespace("curated")
catalog.create_namespace("extra")
rows = pa.table({"id": [1, 2, 3]})
catalog.create_table("extra.kept", rows.schema).append(rows)
catalog.create_table("extra.dropped", rows.schema)
catalog.drop_table("extra.dropped")
"""
QUIET_COMMANDS = (
    "lakewright fleet list --json",
    "lakewright fleet status --json",
    "lakewright fleet usage --json",
    "lakewright grants --all --json",
    "lakewright expire --all --json",
    "lakewright enforce-limits --all --json",
    "lakewright record-compute --all --json",
    "lakewright spec validate --json",
    "lakewright spec explain warehouses.deletion --json",
    "lakewright stack ls --json",
    "lakewright stack history --stack acme --json",
    "lakewright state ls --stack acme --json",
    "lakewright doctor --json",
    "lakewright config --stack acme --format json",
)

pytestmark = [pytest.mark.long, pytest.mark.stand_in("runs `lakewright sandbox up`"), pytest.mark.timeout(600)]
ARCHIVED_AT = datetime(2026, 9, 2, tzinfo=UTC)
ARCHIVES = [
    ArchiveStatus("executions", "id", ArchiveState.ARCHIVED, ARCHIVED_AT),
    ArchiveStatus("raw", "id", ArchiveState.REFUSED, ARCHIVED_AT, ARCHIVED_AT, "an update is running"),
]
RESTRICTIONS = list_restrictions([SelectedStack("acme") for _ in range(12)])
"""The document of `lakewright fleet status` on stacks with archives and enforced limits."""
if FULL:
    pytestmark.append(pytest.mark.spark)


@contextmanager
def follow_getting_started(folder: Path, slow_commands: tuple[str, ...]) -> Iterator[Reader]:
    """Follow "getting started" up to its clean-up, and clean up at the end."""
    folder.mkdir()
    (folder / ".venv").symlink_to(sys.prefix)
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LAKEWRIGHT_IVY") if name in os.environ}
    reader = Reader(folder, environment | {"LAKEWRIGHT_WARM": "0"}, slow_commands=slow_commands)
    try:
        reader.follow(FIRST_TENANT, without=frozenset({INSTALL, CLEAN_UP}))
        yield reader
        reader.follow(FIRST_TENANT, only=CLEAN_UP)
    finally:
        if (folder / ".sandbox" / "sandbox.json").exists():
            run_command(["sandbox", "down", "--purge"], folder, reader.environment)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Return a reader who has followed "getting started", up to its clean-up."""
    with follow_getting_started(
        tmp_path_factory.mktemp("reader") / "lakehouse", () if FULL else JVM_COMMANDS
    ) as reader:
        yield reader


@pytest.fixture
def reader_without_jobs(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Reader]:
    """Return a reader who has started no JVM: growth and shares have values once jobs have written."""
    if FULL:
        with follow_getting_started(tmp_path / "lakehouse", JVM_COMMANDS) as reader:
            yield reader
    else:
        yield request.getfixturevalue("reader")


def test_getting_started(reader: Reader) -> None:
    assert len(reader.commands) > 12
    assert bool(reader.left_out) != FULL


def test_getting_started_shows_the_spec_that_new_writes(reader: Reader) -> None:
    (printed_spec,) = (block.text for block in read_blocks(FIRST_TENANT) if block.file.startswith("tenants/"))
    written = yaml.safe_load((reader.folder / "tenants" / "Pulumi.acme.yaml").read_text())
    assert yaml.safe_load(printed_spec)["config"] == written["config"]


def test_json_page_has_the_shapes_of_documents(reader_without_jobs: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    """`LAKEWRIGHT_RECORD=1` writes the page."""
    reader = reader_without_jobs
    monkeypatch.syspath_prepend(REPOSITORY / "scripts")
    json_page: Any = import_module("json_page")
    outputs: dict[str, Any] = {}

    def record(command: str, exit_code: int = 0) -> None:
        done = run_command(shlex.split(command)[1:], reader.folder, reader.environment)
        assert done.returncode == exit_code, f"$ {command}\n{done.stdout}{done.stderr}"
        outputs[command] = json.loads(done.stdout)

    (reader.folder / "make_drift.py").write_text(MAKE_DRIFT)
    reader.run_line(PrintedCommand("python make_drift.py", 0, ()))
    record("lakewright preview acme --refresh --json")
    record("lakewright drift acme --json", exit_code=7)
    record("lakewright up acme --refresh --yes --json")
    record("lakewright undrop --stack acme --list --json")
    for command in QUIET_COMMANDS:
        record(command)
    record("lakewright verify --stack acme --json", exit_code=1)
    # The tenant has no archive and no enforced limit, whose shapes the page has, too.
    assert outputs["lakewright fleet status --json"]["stacks"][0].keys() == RESTRICTIONS["stacks"][0].keys()
    outputs["lakewright fleet status --json"] = RESTRICTIONS
    outputs["lakewright expire --all --json"]["stacks"][0]["archives"] = [archive.to_json() for archive in ARCHIVES]
    stack_archives = StackArchives(SelectedStack("acme"), days={"executions": 3})
    outputs["lakewright record-compute --all --json"]["archives"] = [stack_archives.to_json()]

    text = json_page.format_page(outputs)
    if RECORDING:
        json_page.PAGE.write_text(text)
    assert json_page.PAGE.read_text() == text, "a key changed: record the page, see the docstring"


@pytest.mark.parametrize("name", GUIDES)
def test_guide(name: str, reader: Reader) -> None:
    reader.follow(DOCS / "guides" / f"{name}.md")
