"""The images run a drift check, a job, a unit and a maintenance run as their user, on a read-only root."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from lakewright_sandbox.runtime.state import Sandbox

from tests.command_server import run_command
from tests.images.conftest import ImageRoot

pytestmark = pytest.mark.timeout(1800)
TENANT = "imagetenant"
JOB = """\
from lakewright_spark import current

run = current()
print("rows:", run.read(run.write("Numbers-1", run.spark.range(5))).count())
"""
UNIT = """
cd /mnt
umask 077; echo 0123456789abcdef0123456789abcdef > /tmp/token
port=$(python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
/opt/entrypoint.sh lakewright-spark connect-server --token-file /tmp/token --port $port --config catalog.json &
python - $port <<'END'
import socket, sys, time
from pyspark.sql.connect.session import SparkSession

port = int(sys.argv[1])
for _ in range(600):
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            break
    time.sleep(0.2)
else:
    sys.exit("the unit does not listen")
session = SparkSession.builder.remote(f"sc://localhost:{port}/;token={open('/tmp/token').read().strip()}").create()
session.sql("CREATE TABLE `operator-port-result`.unit AS SELECT id FROM range(7)")
print("rows:", session.table("`operator-port-result`.unit").count())
session.stop()
END
status=$?
kill -TERM $!
wait $!
exit $status
"""


@pytest.fixture(scope="module")
def project(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with a tenant that `up` made, which every user may read and write."""
    folder = tmp_path_factory.mktemp("project")
    environment = os.environ | {"PULUMI_CONFIG_PASSPHRASE": "x"}

    def run(*arguments: str) -> str:
        done = run_command(arguments, folder, environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("init", ".", "--name", "images", "--cloud", "sandbox")
    (folder / ".sandbox").mkdir()
    for name in ("sandbox.json", "credentials"):
        source = sandbox.credentials_file.parent / name
        text = source.read_text().replace(str(sandbox.credentials_file), "/project/.sandbox/credentials")
        (folder / ".sandbox" / name).write_text(text)
    environment["LAKEWRIGHT_SANDBOX"] = str(sandbox.credentials_file.parent)
    (folder / ".venv").symlink_to(Path(shutil.which("lakewright") or "").parents[1])
    run("new", TENANT, "--owner", "a@acme.example", "--preset", "texera", "--deletion", "purge")
    run("stack", "init", TENANT)
    run("up", TENANT, "--yes", "--engine", "embedded")
    (folder / "catalog.json").write_text(run("config", "--stack", TENANT, "--format", "json"))
    (folder / "job.py").write_text(JOB)
    (folder / ".venv").unlink()
    (folder / ".venv").symlink_to("/opt/lakewright/venv")
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o777 if path.is_dir() else 0o666)
    return folder


def test_drift_image_reads_its_plugins(drift_image: ImageRoot) -> None:
    """Pulumi makes folders of plugins with the mode 0700, for root."""
    plugins = drift_image.run("sh", "-c", "for p in /opt/pulumi/plugins/*/pulumi-resource-*; do $p; done")

    assert len(plugins.split()) == 2


def test_drift_image_finds_no_drift(drift_image: ImageRoot, project: Path, sandbox: Sandbox) -> None:
    """The files of a project are part of a user's image, and so read-only."""
    # The state names the file of credentials where `up` read it.
    volumes = {project: "/project:ro", project / ".sandbox": f"{sandbox.credentials_file.parent}:ro"}
    command = "cd /project && ! touch file && lakewright drift --all"

    done = drift_image.try_run("sh", "-c", command, volumes=volumes, PULUMI_CONFIG_PASSPHRASE="x")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "no drift found" in done.stdout
    assert "Read-only file system" in done.stderr


def test_root_of_an_image_is_read_only(drift_image: ImageRoot) -> None:
    done = drift_image.try_run("sh", "-c", "id -u; touch /opt/file /project/file")

    assert done.stdout.split() == ["185"]
    assert "Read-only file system" in done.stderr


@pytest.mark.spark
def test_spark_image_runs_a_job(spark_image: ImageRoot, project: Path) -> None:
    options = "--config catalog.json --workflow 1 --execution 1 --registry sqlite:////tmp/registry.db"
    command = f"cd /mnt && /opt/entrypoint.sh lakewright-spark run job.py {options}"

    assert "rows: 5" in spark_image.run("sh", "-c", command, volumes={project: "/mnt"})


@pytest.mark.spark
def test_spark_image_maintains_tables(spark_image: ImageRoot, project: Path) -> None:
    """New tables get statistics. The runs are read from `ops.job_runs`."""
    options = "--config catalog.json --workflow 1 --execution 2 --registry sqlite:////tmp/registry.db"
    spark = "cd /mnt && /opt/entrypoint.sh lakewright-spark"
    volumes = {project: "/mnt"}
    spark_image.run("sh", "-c", f"{spark} run job.py {options}", volumes=volumes)

    spark_image.run("sh", "-c", f"{spark} maintain --config catalog.json", volumes=volumes)

    runs = json.loads(spark_image.run("sh", "-c", f"{spark} runs list --config catalog.json --json", volumes=volumes))
    maintained = {run["table"] for run in runs if (run["job"], run["state"]) == ("statistics", "SUCCEEDED")}
    assert any("wid_1_eid_2_" in table for table in maintained), runs


@pytest.mark.spark
def test_spark_image_starts_a_unit(spark_image: ImageRoot, project: Path) -> None:
    """A client of the unit's Spark Connect writes and reads a table. The unit ends with SIGTERM."""
    done = spark_image.try_run("sh", "-c", UNIT, volumes={project: "/mnt"})

    assert done.returncode == 0, done.stdout + done.stderr
    assert "rows: 7" in done.stdout
