"""Commands that start nothing: their time is that of their imports, and of the files that they read.

The reference is the goal of each command on two quiet cores. The commands have one thread, so their processor time is
compared with it, to which other work of the machine adds little.
"""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
from pathlib import Path

from benchmarks.ground import Ground
from benchmarks.measure import Row
from demo.stage import BIN

TIMES = 7
FILES = 1000
SPEC = """\
config:
  lakewright:tenant:
    version: 1
    environment: production
    name: {name}
    owner: data@acme.example
    labels: {{cost-center: "4711"}}
    storage:
      main: {{backend: aws, bucket: {name}-lakehouse, region: us-west-2}}
    warehouses:
      - {{name: executions, namespaces: {{preset: texera}}, soft_delete_days: 7, deletion: protect}}
      - {{name: curated, namespaces: [sales, sales.daily, ops]}}
    grants:
      - {{to: role:analysts, privilege: select, on: {{warehouse: curated}}}}
    tables:
      - name: curated.sales.daily.orders
        columns: [{{name: id, type: long, required: true}}, {{name: day, type: date}}, {{name: amount, type: double}}]
        partition_by: [days(day)]
"""
ENVIRONMENT = """\
lakekeeper:
  endpoint: https://lakekeeper.example
  principal_arn: arn:aws:iam::123456789012:role/lakekeeper
aws: {region: us-west-2}
"""


def measure(ground: Ground) -> list[Row]:
    del ground  # these commands need no server
    with tempfile.TemporaryDirectory() as folder:
        first, *_ = files = _write_project(Path(folder))
        return [
            _measure("lakewright --help", 0.15, Path(folder), "--help"),
            _measure("spec validate of one file", 0.5, Path(folder), "spec", "validate", str(first)),
            _measure(f"spec validate of {len(files):,} files", 5.0, Path(folder), "spec", "validate", times=3),
        ]


def _measure(name: str, goal: float, folder: Path, *arguments: str, times: int = TIMES) -> Row:
    """Return the least processor time of a command."""
    command = [str(BIN / "lakewright"), *arguments]
    environment = {**os.environ, "LAKEWRIGHT_WARM": "0"}
    seconds: list[float] = []
    for _ in range(times):
        before = _read_processor_seconds()
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        seconds.append(_read_processor_seconds() - before)
    return Row(name, min(seconds), goal, 1.0, note="processor time, against the goal")


def _read_processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _write_project(folder: Path) -> list[Path]:
    """Write a project with many stack files, and return them."""
    (folder / "tenants").mkdir()
    (folder / "environments").mkdir()
    (folder / "Pulumi.yaml").write_text("name: many\nruntime: python\nstackConfigDir: tenants\n")
    (folder / "__main__.py").write_text("from lakewright import declare_tenant\n\ndeclare_tenant()\n")
    (folder / "environments" / "production.yaml").write_text(ENVIRONMENT)
    files = [folder / "tenants" / f"Pulumi.t{number:04}.yaml" for number in range(FILES)]
    for file in files:
        file.write_text(SPEC.format(name=file.stem.removeprefix("Pulumi.")))
    return files
