"""Times that commands print: one form in texts, one in JSON."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import lakewright_engine.model.times as engine_times
import lakewright_spark.times as shared_times
import pytest

from tests.tenant_project import REPOSITORY

MOMENTS = [
    datetime(2026, 1, 31, 12, tzinfo=UTC),
    datetime(2026, 1, 31, 12, 0, 0, 250000, tzinfo=UTC),
    datetime(2026, 1, 31, 1, 30, tzinfo=timezone(timedelta(hours=5, minutes=30))),
]
FORMAT = re.compile(r"strftime|(?<!from)isoformat\(|%H.?%M|%F")
OTHER_FORMS = {
    "components/lakewright/ci/publishing/events.py": "MicroTime of Kubernetes",
    "components/lakewright/drift/objects/aws/comparison.py": "as the AWS plugin stores times",
    "components/lakewright/drift/detection/ignore_rules.py": "dates",
    "components/lakewright/validation/moment.py": "values of a doctest",
    "components/lakewright/fleet/run_folder.py": "name of a folder",
    "engine/lakewright_engine/state/checkpoint.py": "Pulumi's state",
    "engine/lakewright_engine/steps/deployment.py": "Pulumi's state",
    "engine/lakewright_engine/storage/holding.py": "Pulumi's lock",
    "engine/lakewright_engine/unsaved_state.py": "name of a file",
    "spark/lakewright_spark/cli/usage.py": "dates",
    "spark/lakewright_spark/maintenance/jobs/retention.py": "literals of SQL",
    "spark/lakewright_spark/maintenance/table/file_conditions.py": "literals of SQL",
    "spark/lakewright_spark/maintenance/table/iceberg.py": "literals of SQL",
    "spark/lakewright_spark/policies/date_pattern.py": "patterns of a policy",
    "spark/lakewright_spark/scheduler/archived_usage.py": "dates",
    "spark/lakewright_spark/scheduler/run_log/orphan_candidates.py": "literals of filters",
    "spark/lakewright_spark/pyiceberg_client/recorded_sizes.py": "literals of filters",
    "spark/lakewright_spark/migration/ledger.py": "column of the ledger",
}
"""Files that format times for something else than the output of a command, and for what."""


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_engine_formats_times_as_the_other_packages(moment: datetime) -> None:
    assert engine_times.format_time(moment) == shared_times.format_time(moment)
    assert engine_times.format_json_time(moment) == shared_times.format_json_time(moment)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-31T12:00:00Z", "2026-01-31 12:00:00 UTC"),
        ("2026-01-31T13:00:00.123456789+01:00", "2026-01-31 12:00:00 UTC"),
        ("", ""),
        ("unknown", "unknown"),
    ],
)
def test_times_of_json_have_one_form_in_texts(text: str, expected: str) -> None:
    assert shared_times.format_json_time_as_text(text) == expected


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (MOMENTS[0], "2026-01-31T12:00:00Z"),
        (MOMENTS[1], "2026-01-31T12:00:00.250000Z"),
        (MOMENTS[2], "2026-01-30T20:00:00Z"),
    ],
)
def test_times_in_json_are_rfc_3339_in_utc(moment: datetime, expected: str) -> None:
    assert shared_times.format_json_time(moment) == expected


def test_no_other_code_formats_times() -> None:
    folders = ("components/lakewright", "engine/lakewright_engine", "spark/lakewright_spark")
    sources = [file for folder in folders for file in (REPOSITORY / folder).rglob("*.py") if file.name != "times.py"]

    files = {str(file.relative_to(REPOSITORY)) for file in sources if FORMAT.search(file.read_text())}

    assert files == OTHER_FORMS.keys(), "use `format_time` for texts and `format_json_time` for JSON"
