"""`lakewright doctor` reports what exists and what is missing, and exits with 1 if something is missing."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from textwrap import dedent
from uuid import uuid4

import boto3
import pytest
from lakewright.cli import main
from lakewright.doctor import check_services, machine, services
from lakewright.environment.environment import Environment
from lakewright.storage.backend import BucketProbe
from lakewright.storage.s3 import LakekeeperCredential, S3Storage
from lakewright_sandbox.runtime.state import Sandbox


def _environment(folder: Path, text: str) -> Environment:
    file = folder / "here.yaml"
    file.write_text(text)
    return Environment.load(file, environ={})


def write_project(folder: Path, environment: str) -> None:
    """Write the files of a project with one environment, `here`."""
    (folder / "Pulumi.yaml").write_text("name: lakewright\nruntime: python\n")
    (folder / "environments").mkdir()
    (folder / "environments" / "here.yaml").write_text(environment)


def test_running_sandbox_lacks_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    environment = _environment(tmp_path, f"sandbox: {sandbox.dir}\n")

    findings = {finding.subject: finding for finding in check_services(environment)}

    assert {subject: finding.state for subject, finding in findings.items()} == {
        "Lakekeeper": "ok",
        "S3 identity": "ok",
        "Kubernetes": "ok",
    }
    assert sandbox.lakekeeper.endpoint.rstrip("/") in findings["Lakekeeper"].result
    assert findings["S3 identity"].result.startswith("arn:aws:iam::123456789012:user/admin")


def test_missing_bucket_is_named(sandbox: Sandbox, tmp_path: Path) -> None:
    environment = _environment(tmp_path, f"sandbox: {sandbox.dir}\n")

    bucket = check_services(environment, [BucketProbe("nobody-made-this")])[2]

    assert (bucket.subject, bucket.state) == ("bucket nobody-made-this", "missing")


def _probe_store(sandbox: Sandbox, bucket: str) -> BucketProbe:
    keys = LakekeeperCredential(access_key_id="env:STORE_KEY", secret_access_key="env:STORE_SECRET")
    storage = S3Storage(
        backend="s3", bucket=bucket, endpoint=sandbox.aws.endpoint, region=sandbox.aws.region, credential=keys
    )
    probe = storage.probe()
    assert probe is not None
    return probe


def _set_keys(monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox) -> None:
    monkeypatch.setenv("STORE_KEY", sandbox.admin.access_key_id)
    monkeypatch.setenv("STORE_SECRET", sandbox.admin.secret_access_key.get_secret_value())


def test_store_is_probed_with_the_keys_of_its_spec(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    _set_keys(monkeypatch, sandbox)
    bucket = f"store-{uuid4().hex}"
    boto3.client(
        "s3",
        endpoint_url=sandbox.aws.endpoint,
        region_name=sandbox.aws.region,
        aws_access_key_id=sandbox.admin.access_key_id,
        aws_secret_access_key=sandbox.admin.secret_access_key.get_secret_value(),
    ).create_bucket(Bucket=bucket)

    assert services.check_bucket(_probe_store(sandbox, bucket)).state == "ok"
    assert services.check_bucket(_probe_store(sandbox, "nobody-made-this")).state == "missing"
    monkeypatch.setenv("STORE_SECRET", "another")
    refused = services.check_bucket(_probe_store(sandbox, bucket))
    assert (refused.state, "another" in refused.result) == ("missing", False)


def test_unreadable_store_key_is_named_by_its_reference(sandbox: Sandbox) -> None:
    unread = services.check_bucket(_probe_store(sandbox, "whichever"))

    assert unread.state == "missing"
    assert "env:STORE_KEY" in unread.result


def test_command_checks_a_tenants_store_by_its_endpoint(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _set_keys(monkeypatch, sandbox)
    monkeypatch.chdir(tmp_path)
    write_project(tmp_path, f"sandbox: {sandbox.dir}\n")
    (tmp_path / "Pulumi.acme.yaml").write_text(
        """
        config:
          lakewright:tenant:
            version: 1
            environment: here
            name: acme
            owner: tests
            storage:
              main:
                backend: s3
                bucket: closed
                endpoint: http://127.0.0.1:9/
                credential: {access_key_id: "env:STORE_KEY", secret_access_key: "env:STORE_SECRET"}
            warehouses: [{name: executions}]
        """
    )

    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--json", "--stack", "acme"])

    assert ended.value.code == 1
    findings = {finding["subject"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert findings["bucket closed"]["state"] == "missing"
    assert "http://127.0.0.1:9" in findings["bucket closed"]["found"]

    with pytest.raises(SystemExit):
        main(["doctor", "--failed", "--stack", "acme"])

    lines = capsys.readouterr().out.splitlines()
    missing = [finding for finding in findings.values() if finding["state"] == "missing"]
    assert [line.split()[0] for line in lines] == ["missing"] * len(missing)
    (line,) = [line for line in lines if line.startswith("missing  bucket closed: ")]
    assert line.endswith(f"to fix it: {findings['bucket closed']['fix']}")


@pytest.fixture
def stack_file(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a stack whose configuration has all secrets, in the working folder of a machine without Java."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    keys = {"aws_access_key_id": sandbox.admin.access_key_id}
    keys["aws_secret_access_key"] = sandbox.admin.secret_access_key.get_secret_value()
    bucket = f"store-{uuid4().hex}"
    boto3.client("s3", endpoint_url=sandbox.aws.endpoint, region_name=sandbox.aws.region, **keys).create_bucket(
        Bucket=bucket
    )
    write_project(
        tmp_path,
        f"""
        sandbox: {sandbox.dir}
        lakekeeper:
          endpoint: {sandbox.lakekeeper.endpoint}
          auth: {{kind: token, token: "config:server_token"}}
        """,
    )
    stack_file = tmp_path / "Pulumi.acme.yaml"
    stack_file.write_text(
        f"""
        config:
          lakewright:server_token: a-token
          lakewright:store_key: {keys["aws_access_key_id"]}
          lakewright:store_secret: {keys["aws_secret_access_key"]}
          lakewright:tenant:
            version: 1
            environment: here
            name: acme
            owner: tests
            storage:
              main:
                backend: s3
                bucket: {bucket}
                endpoint: {sandbox.aws.endpoint}
                region: {sandbox.aws.region}
                credential: {{access_key_id: "config:store_key", secret_access_key: "config:store_secret"}}
            warehouses: [{{name: executions}}]
        """
    )
    return stack_file


def read_services(capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    """Run the command, which a missing Java ends with 1, and return its findings for Lakekeeper and the store."""
    with pytest.raises(SystemExit):
        main(["doctor", "--json", "--stack", "acme"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    return [entry for entry in findings if entry["subject"].startswith(("Lakekeeper", "bucket "))]


@pytest.mark.usefixtures("stack_file")
def test_command_reads_secrets_of_the_stacks_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    assert [finding["state"] for finding in read_services(capsys)] == ["ok", "ok"]


def test_secrets_of_another_provider_are_not_checked(stack_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the engine that runs the stack can decrypt them."""
    encrypted = re.sub(r"(server_token|store_key): .*", r"\1: {secure: v1:abc:def}", stack_file.read_text())
    stack_file.write_text(dedent(encrypted) + "secretsprovider: awskms://alias/stacks\n")

    findings = read_services(capsys)

    assert [finding["state"] for finding in findings] == ["optional", "optional"]
    assert all(finding["found"].startswith("not checked: ") for finding in findings)


def test_unreachable_servers_are_named_with_their_endpoint(tmp_path: Path) -> None:
    environment = _environment(
        tmp_path,
        "lakekeeper: {endpoint: 'http://127.0.0.1:9'}\n"
        "aws: {endpoint: 'http://127.0.0.1:9', region: us-east-1}\n"
        "kubernetes: {context: nowhere}\n",
    )

    findings = check_services(environment)

    assert [finding.state for finding in findings] == ["missing", "missing", "missing"]
    assert all(finding.fix for finding in findings)
    assert "http://127.0.0.1:9" in findings[0].result
    assert "http://127.0.0.1:9" in findings[1].result


def test_missing_java_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    java = machine.check_java()

    assert java.state == "missing"
    assert "openjdk-17" in java.fix


def test_old_java_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")

    java = machine.check_java()

    assert (java.state, java.result) == ("missing", 'openjdk version "11.0.2"')


def test_java_with_options_of_the_environment_is_ok(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Java prints the variables before its version."""
    java = tmp_path / "java"
    java.write_text(
        "#!/bin/sh\n"
        "echo 'Picked up JAVA_TOOL_OPTIONS: -Dversion=8' >&2\n"
        "echo 'openjdk version \"17.0.2\" 2022-01-18' >&2\n"
    )
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")

    finding = machine.check_java()

    assert (finding.state, finding.result, finding.fix) == ("ok", 'openjdk version "17.0.2" 2022-01-18', "")


def test_json_is_one_object_and_missing_things_exit_with_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--json"])

    assert ended.value.code == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert {"subject", "state", "found", "fix"} == set(findings[0])
    assert {finding["subject"]: finding["state"] for finding in findings}["Java"] == "missing"


def test_no_secret_goes_to_a_store_that_is_not_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A spec names any host, and the deployer's secret as a key id, which clients send unencrypted."""
    monkeypatch.setenv("LAKEWRIGHT_CLIENT_SECRET", "the-deployers-secret")
    monkeypatch.chdir(tmp_path)
    received_headers: list[str] = []

    class Host(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            received_headers.append(str(self.headers))
            self.send_response(404)
            self.end_headers()

    host = HTTPServer(("127.0.0.1", 0), Host)
    threading.Thread(target=host.serve_forever, daemon=True).start()
    write_project(tmp_path, "lakekeeper: {endpoint: 'http://127.0.0.1:9'}\n")
    (tmp_path / "Pulumi.acme.yaml").write_text(
        f"""
        config:
          lakewright:tenant:
            version: 1
            environment: here
            name: acme
            owner: tests
            storage:
              main:
                backend: s3
                bucket: store
                endpoint: http://127.0.0.1:{host.server_port}/
                credential: {{access_key_id: "env:LAKEWRIGHT_CLIENT_SECRET", secret_access_key: "env:PATH"}}
            warehouses: [{{name: executions}}]
        """
    )

    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--stack", "acme"])
    host.shutdown()
    host.server_close()

    assert ended.value.code == 1
    assert received_headers == []
    errors_printed = capsys.readouterr().err
    for yaml_path in ("storage.main.endpoint", "credential.access_key_id", "credential.secret_access_key"):
        assert yaml_path in errors_printed
