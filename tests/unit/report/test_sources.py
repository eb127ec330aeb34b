"""The sources of a report: documents are recognized by their command, other texts are refused with what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lakewright.report.collection import read_files
from lakewright.report.errors import ReportSourceError
from lakewright.report.sources import SourceKind, read_source

from tests.fleet_documents import make_sources


def test_each_command_is_recognized() -> None:
    sources = make_sources(2, history=1)

    assert {source.kind for source in sources} == {*SourceKind}
    assert all(source.at for source in sources)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found nothing"),
        ("not json", "found something else"),
        ('[{"id": "1"}]', "a document without `command`"),
        ('{"version": 1, "command": "preview", "stacks": []}', "found that of `preview`"),
        ('{"version": 2, "command": "drift", "stacks": []}', "`version`: expected 1, found 2"),
    ],
)
def test_other_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(ReportSourceError, match=r"night\.json: ") as raised:
        read_source(text, "night.json")

    assert message in str(raised.value)


def test_folder_is_read_and_an_empty_folder_refused(tmp_path: Path) -> None:
    with pytest.raises(ReportSourceError, match="expected JSON files, found none"):
        read_files([tmp_path])
    (tmp_path / "drift.json").write_text(json.dumps({"version": 1, "command": "drift", "stacks": []}))

    assert [source.kind for source in read_files([tmp_path])] == [SourceKind.DRIFT]


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReportSourceError, match=r"none\.json: expected a file with JSON"):
        read_files([tmp_path / "none.json"])
