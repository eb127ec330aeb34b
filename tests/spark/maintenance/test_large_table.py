"""A table with the metadata of a million files in 100 snapshots is maintained within 2 GiB of heap."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lakewright_spark.catalog import CatalogConfig

FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
COMMITS, FILES, LISTED = (100, 10_000, 10_000_000) if FULL else (10, 100, 10_000)
MAX_PYTHON_MIB = 512
ORPHANS = 1000
pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(7200 if FULL else 600)]


def run_steps(config: CatalogConfig, folder: Path) -> dict[str, dict[str, Any]]:
    """Return the result of each step. Java ends the process of Spark when its heap is full."""
    path = folder / "catalog.json"
    path.write_text(config.to_json())
    script = Path(__file__).with_name("large_table.py")
    command = [sys.executable, str(script), str(path), *map(str, (COMMITS, FILES, LISTED))]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    print(process.stdout)
    assert process.returncode == 0, process.stderr[-4000:]
    lines = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]
    return {line["step"]: line for line in lines}


def test_metadata_of_many_files_fits_into_memory(catalog_config: CatalogConfig, tmp_path: Path) -> None:
    steps = run_steps(catalog_config, tmp_path)
    results = {step: line["result"] for step, line in steps.items()}
    replaced = COMMITS // 10 * min(1000, FILES)
    assert results["statistics"]["data_files"] == COMMITS * FILES - replaced
    assert results["statistics"]["snapshots"] == COMMITS
    assert results["usage"] == results["usage again"] == COMMITS * FILES - replaced
    assert results["orphan-files"]["candidates"] == results["orphan-files"]["new"] == ORPHANS
    assert results["staged-files"]["deleted"] == 0, "the store has none of the files"
    assert results["snapshot-expiration"]["snapshots"] == COMMITS - 1
    assert results["snapshot-expiration"]["data_files"] >= replaced - 1000
    assert results["compaction"]["rewritten"] > 0
    assert results["retention"]["files"] == COMMITS * FILES - replaced
    assert max(line["python_mib"] for line in steps.values()) <= MAX_PYTHON_MIB
