"""Gauges of drift, in a file and on a real Prometheus pushgateway."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from lakewright.ci.documents import read_drift
from lakewright.ci.errors import PublishError, SettingError
from lakewright.ci.publishing import check as publishing_check
from lakewright.ci.publishing.check import DriftCheck, run_check
from lakewright.ci.publishing.gauges import write_textfile
from lakewright.ci.publishing.publish import parse_event_source, parse_grouping
from lakewright.ci.publishing.pushgateway import Pushgateway
from lakewright.cli.commands.ci import app
from lakewright.http.retry import RetryPolicy
from lakewright_sandbox.runtime.processes import free_port
from prometheus_client.parser import text_string_to_metric_families
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed
from typer.testing import CliRunner

REPOSITORY = Path(__file__).parents[2]
WAREHOUSE = {"type": "x:lakekeeper:Warehouse", "resource": "executions", "property": "name", "kind": "changed"}
ACME, CALM = ("acme", "acme", "production"), ("calm", "calm", "production")


def stack(name: str, *differences: dict[str, Any], problems: tuple[str, ...] = ()) -> dict[str, Any]:
    whole = {"stack": name, "tenant": name, "environment": "production", "resources": 4}
    return {**whole, "differences": differences, "problems": problems}


def check(*stacks: dict[str, Any], ended: float = 1000, **more: Any) -> DriftCheck:
    return DriftCheck(read_drift(json.dumps({"version": 1, "seconds": 2.5, "stacks": stacks, **more})), ended)


DRIFTED = check(
    stack(
        "acme",
        WAREHOUSE,
        WAREHOUSE | {"property": "protected"},
        WAREHOUSE | {"resource": "gone", "kind": "gone"},
        WAREHOUSE | {"ignored": {"reason": "a trial"}},
    ),
    stack("calm"),
)

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str, without: tuple[str, ...] = ()) -> Samples:
    """Return the values of a text in Prometheus's format, by name and labels."""
    return {
        (
            sample.name.removeprefix("lakewright_drift_"),
            frozenset((k, v) for k, v in sample.labels.items() if k not in without),
        ): (sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("lakewright_drift_")
    }


def value(gauges: Samples, name: str, labels: tuple[str, str, str] | None = None, **more: str) -> float | None:
    stack_labels = dict(zip(("tenant", "stack", "environment"), labels, strict=True)) if labels else {}
    return gauges.get((name, frozenset((stack_labels | more).items())))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "drift.prom"


def test_gauges_count_resources_by_kind(file: Path) -> None:
    write_textfile(DRIFTED, file)

    gauges = samples(file.read_text())
    assert value(gauges, "resources", ACME, kind="changed") == 1, "two properties of one resource"
    assert value(gauges, "resources", ACME, kind="gone") == 1
    assert value(gauges, "resources", CALM, kind="changed") == 0, "an alert ends when the gauge is 0"
    assert value(gauges, "ignored_resources", ACME) == 1
    assert value(gauges, "problems", ACME) == 0
    assert value(gauges, "last_success_timestamp_seconds", CALM) == 1000
    assert value(gauges, "duration_seconds") == 2.5
    assert value(gauges, "check_failed") == 0


def test_every_gauge_has_help_and_type(file: Path) -> None:
    write_textfile(DRIFTED, file)

    lines = file.read_text().splitlines()
    names = {line.split("{")[0].split()[0] for line in lines if not line.startswith("#")}
    assert {line.split()[2] for line in lines if line.startswith("# TYPE") and line.endswith(" gauge")} == names
    assert {line.split()[2] for line in lines if line.startswith("# HELP")} == names


def test_unchecked_stack_keeps_its_last_success(file: Path) -> None:
    write_textfile(DRIFTED, file)

    write_textfile(check(stack("acme", problems=("the state is locked",)), stack("calm"), ended=2000), file)

    gauges = samples(file.read_text())
    assert value(gauges, "last_success_timestamp_seconds", ACME) == 1000
    assert value(gauges, "last_success_timestamp_seconds", CALM) == 2000
    assert value(gauges, "problems", ACME) == 1


def test_unreachable_stack_keeps_its_last_success(file: Path) -> None:
    write_textfile(DRIFTED, file)

    write_textfile(check(stack("acme", WAREHOUSE | {"kind": "unreachable"}), ended=2000), file)

    gauges = samples(file.read_text())
    assert value(gauges, "resources", ACME, kind="unreachable") == 1
    assert value(gauges, "last_success_timestamp_seconds", ACME) == 1000


def test_failed_check_keeps_all_successes(file: Path) -> None:
    write_textfile(DRIFTED, file)

    write_textfile(DriftCheck(None, 2000, 3, "killed"), file)
    write_textfile(DriftCheck(None, 3000, 3, "killed"), file)

    gauges = samples(file.read_text())
    assert value(gauges, "check_failed") == 1
    assert value(gauges, "last_success_timestamp_seconds", ACME) == 1000
    assert value(gauges, "resources", ACME, kind="changed") is None, "nothing is known"


@pytest.mark.parametrize(
    "failure", [{"error": "no Pulumi.yaml found", "seconds": None}, {}], ids=["error", "no stacks"]
)
def test_report_without_stacks_keeps_all_successes(file: Path, failure: dict[str, Any]) -> None:
    write_textfile(DRIFTED, file)

    write_textfile(check(ended=2000, **failure), file)

    gauges = samples(file.read_text())
    assert value(gauges, "check_failed") == 1
    assert value(gauges, "last_success_timestamp_seconds", ACME) == 1000


def test_removed_stack_has_no_gauges(file: Path) -> None:
    write_textfile(DRIFTED, file)

    write_textfile(check(stack("calm")), file)

    assert "acme" not in file.read_text()


def test_labels_are_escaped(file: Path) -> None:
    write_textfile(check(stack('a"b\\c\nd')), file)

    assert value(samples(file.read_text()), "problems", ('a"b\\c\nd', 'a"b\\c\nd', "production")) == 0


def test_damaged_file_is_replaced(file: Path) -> None:
    file.write_text("lakewright_drift_last_success_timestamp_seconds{tenant=")

    write_textfile(DRIFTED, file)

    assert value(samples(file.read_text()), "check_failed") == 0


def test_textfile_is_replaced_at_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_textfile(DRIFTED, file)
    before = file.read_text()

    def fail(*_words: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.rename", fail)
    with pytest.raises(PublishError, match="No space left"):
        write_textfile(check(stack("other")), file)

    assert file.read_text() == before
    assert [path.name for path in file.parent.iterdir()] == ["drift.prom"]


def test_textfile_has_the_name_that_is_collected(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"ends in \.prom"):
        write_textfile(DRIFTED, tmp_path / "drift.txt")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real pushgateway, which is built once; without its sources these tests are skipped."""
    command = [REPOSITORY / "scripts" / "go_program.sh", Path(__file__).parent / "pushgateway"]
    built = subprocess.run([*command, "github.com/prometheus/pushgateway"], capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.skip(f"the pushgateway cannot be built here: {built.stderr.strip().splitlines()[-1]}")
    address = f"127.0.0.1:{free_port()}"
    log = (tmp_path_factory.mktemp("pushgateway") / "log").open("wb")
    with subprocess.Popen([built.stdout.strip(), f"--web.listen-address={address}"], stderr=log) as server:
        url = f"http://{address}"
        wait_until_ready(url)
        yield url
        server.terminate()


@retry(retry=retry_if_exception_type(httpx.HTTPError), wait=wait_fixed(0.1), stop=stop_after_delay(30), reraise=True)
def wait_until_ready(url: str) -> None:
    httpx.get(f"{url}/-/ready").raise_for_status()


def read_gauges(url: str, project: str) -> Samples:
    groups = httpx.get(f"{url}/metrics").text
    project_text = "\n".join(
        line for line in groups.splitlines() if line.startswith("#") or f'project="{project}"' in line
    )
    return samples(project_text, without=("job", "project", "instance"))


def test_pushgateway_has_the_same_gauges(gateway: str, file: Path) -> None:
    write_textfile(DRIFTED, file)

    Pushgateway(gateway, {"project": "same"}).push(DRIFTED)

    assert read_gauges(gateway, "same") == samples(file.read_text())


def test_push_replaces_the_whole_group(gateway: str) -> None:
    group, other = Pushgateway(gateway, {"project": "a/b"}), Pushgateway(gateway, {"project": "other"})
    other.push(check(stack("acme"), ended=5))
    group.push(DRIFTED)

    group.push(check(stack("calm", problems=("locked",)), ended=2000))

    gauges = read_gauges(gateway, "a/b")
    assert not [labels for _, labels in gauges if ("stack", "acme") in labels], "acme left the fleet"
    assert value(gauges, "last_success_timestamp_seconds", CALM) == 1000
    assert value(read_gauges(gateway, "other"), "last_success_timestamp_seconds", ACME) == 5


def test_refused_push_names_the_reason(gateway: str) -> None:
    with pytest.raises(PublishError, match=r"responded with 404 to GET"):
        Pushgateway(f"{gateway}/elsewhere").push(DRIFTED)


def test_silent_pushgateway_is_an_error() -> None:
    silent = Pushgateway("http://127.0.0.1:9", retry=RetryPolicy(attempts=2, first_wait=0))

    with pytest.raises(PublishError, match="did not respond: ConnectError"):
        silent.push(DRIFTED)


@pytest.mark.parametrize(
    ("url", "auth", "expected"),
    [
        ("pushgateway:9091", None, "expected an address such as"),
        ("http://user:secret@pushgateway:9091", None, "without credentials"),
        ("http://pushgateway:9091", ("user", "secret"), "expected `https://`"),
    ],
)
def test_unsafe_addresses_are_refused(url: str, auth: Any, expected: str) -> None:
    with pytest.raises(SettingError, match=expected) as refused:
        Pushgateway(url, auth=auth)
    assert auth is None or "secret" not in str(refused.value)


def test_wrong_options_are_refused() -> None:
    for text in ("job=x", "noequals", "1a=b"):
        with pytest.raises(SettingError, match="expected NAME=VALUE"):
            parse_grouping([text])
    with pytest.raises(SettingError, match="expected NAMESPACE/CRONJOB"):
        parse_event_source("only-a-name", None, {})
    with pytest.raises(SettingError, match="with --events only"):
        parse_event_source(None, "memory", {})


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({"version": 1, "stacks": [stack("acme", WAREHOUSE)]}, 0),
        ({"version": 1, "stacks": [stack("acme", problems=("locked",))]}, 1),
        ({"version": 1, "stacks": [], "error": "no Pulumi.yaml"}, 1),
    ],
)
def test_exit_code_is_about_the_check(document: dict[str, Any], code: int, file: Path) -> None:
    result = CliRunner().invoke(app, ["publish", "--textfile", str(file)], input=json.dumps(document))

    assert result.exit_code == code, result.output
    assert file.exists()


def test_all_targets_get_the_check_though_one_fails(file: Path, gateway: str) -> None:
    arguments = ["publish", "--textfile", str(file.parent / "no-folder" / "a.prom"), "--pushgateway", gateway]

    document = json.dumps({"version": 1, "stacks": [stack("acme")]})
    result = CliRunner().invoke(app, [*arguments, "--grouping", "project=targets"], input=document)

    assert isinstance(result.exception, PublishError)
    assert value(read_gauges(gateway, "targets"), "check_failed") == 0


def test_publish_without_a_target_is_refused() -> None:
    result = CliRunner().invoke(app, ["publish"], input='{"version": 1, "stacks": []}')

    assert isinstance(result.exception, SettingError)


def test_check_that_prints_no_report_is_a_failure() -> None:
    drift_check = run_check(["drift", "--no-such-option"])

    assert drift_check.report is None
    assert not drift_check.is_complete
    assert "`lakewright drift` ended with exit code 2" in drift_check.failure


@pytest.fixture
def replace_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that makes `lakewright` in child processes run a program."""

    def replace(program: str) -> None:
        (tmp_path / "lakewright").mkdir()
        (tmp_path / "lakewright" / "__init__.py").touch()
        (tmp_path / "lakewright" / "cli.py").write_text(program)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    return replace


def test_killed_check_is_a_failure(replace_check: Callable[[str], None]) -> None:
    """The child is a real process that is killed, as by a node without memory."""
    replace_check("import os; os.kill(os.getpid(), 9)\n")

    drift_check = run_check(["drift", "--all"])

    assert drift_check.report is None
    assert "ended with signal 9" in drift_check.failure


STOPPED_CHECK = """
import os, signal, time

signal.signal(signal.SIGTERM, signal.{disposition})
for _ in range(600):
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(0.1)
"""
"""A check whose pod Kubernetes stops: it sends the SIGTERM that the pod would get."""


@pytest.mark.parametrize("disposition", ["SIG_DFL", "SIG_IGN"])
def test_check_that_is_stopped_is_a_failure(
    disposition: str, replace_check: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing_check, "STOP_SECONDS", 0.5)
    replace_check(STOPPED_CHECK.format(disposition=disposition))
    before = signal.signal(signal.SIGTERM, lambda *_: None)

    drift_check = run_check(["drift", "--all"])

    signal.signal(signal.SIGTERM, before)
    assert drift_check.report is None
    assert "`lakewright drift` was stopped by SIGTERM" in drift_check.failure
    assert drift_check.seconds < 30
