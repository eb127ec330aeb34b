"""The Pulumi CLI with these providers, attached by PULUMI_DEBUG_PROVIDERS: the life of a stack."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

pytestmark = [pytest.mark.pulumi_cli, pytest.mark.timeout(600)]

CASE = Path(__file__).parents[2] / "kubernetes" / "render"

AWS_PROGRAM = """\
import json
import pulumi
import pulumi_aws as aws

config = pulumi.Config()
name, days = config.require("name"), config.get_int("days") or 30
me = aws.get_caller_identity()
tags = {"owner": config.get("owner") or "data"}
bucket = aws.s3.Bucket("data", bucket=name, force_destroy=True, tags=tags)
aws.s3.BucketVersioning("v", bucket=bucket.id, versioning_configuration={"status": "Enabled"})
aws.s3.BucketServerSideEncryptionConfiguration(
    "e", bucket=bucket.id, rules=[{"apply_server_side_encryption_by_default": {"sse_algorithm": "AES256"}}]
)
aws.s3.BucketPublicAccessBlock(
    "b", bucket=bucket.id, block_public_acls=True, block_public_policy=True,
    ignore_public_acls=True, restrict_public_buckets=True,
)
aws.s3.BucketOwnershipControls("o", bucket=bucket.id, rule={"object_ownership": "BucketOwnerEnforced"})
aws.s3.BucketLifecycleConfiguration(
    "l", bucket=bucket.id,
    rules=[
        {"id": "old", "status": "Enabled", "noncurrent_version_expiration": {"noncurrent_days": days}},
        {"id": "uploads", "status": "Enabled", "filter": {},
         "abort_incomplete_multipart_upload": {"days_after_initiation": 3}},
    ],
)
aws.s3.BucketPolicy(
    "p", bucket=bucket.id,
    policy=bucket.arn.apply(lambda arn: json.dumps({"Version": "2012-10-17", "Statement": [{
        "Sid": "TlsOnly", "Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": [arn, arn + "/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}}}]})),
)
trust = aws.iam.get_policy_document(statements=[{
    "actions": ["sts:AssumeRole"], "principals": [{"type": "AWS", "identifiers": [me.arn]}]}])
role = aws.iam.Role("r", name=name, assume_role_policy=trust.json, tags=tags)
aws.iam.RolePolicy("rp", name="read", role=role.name, policy=bucket.arn.apply(lambda arn: json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": arn + "/*"}]})))
pulumi.export("arn", bucket.arn)
pulumi.export("role", role.arn)
"""


@dataclass(frozen=True)
class CliStack:
    """A Pulumi project with one stack `dev`, in its own folder."""

    cli: str
    folder: Path
    env: dict[str, str]

    def run(self, *arguments: str, expected_code: int = 0) -> str:
        completed = subprocess.run(
            [self.cli, *arguments, "--non-interactive", "--color=never"],
            check=False,
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
        )
        assert completed.returncode == expected_code, completed.stdout + completed.stderr
        return completed.stdout + completed.stderr

    def changes(self, verb: str, *flags: str, expected_code: int = 0) -> dict[str, list[str]]:
        """Return the resources of each operation except `same`, by their short type names."""
        text = self.run(verb, "--yes", "--skip-preview", "--suppress-progress", *flags, expected_code=expected_code)
        kinds_by_operation: dict[str, list[str]] = {}
        for kind, operation in re.findall(
            r"^\s*[-+~]+\s+(aws:\S+|kubernetes:\S+)\s.*?\b(created|updated|deleted|replaced)\b", text, re.M
        ):
            kinds_by_operation.setdefault(operation, []).append(kind.rsplit(":", 1)[-1])
        return {operation: sorted(kinds) for operation, kinds in kinds_by_operation.items()}

    def state(self) -> list[dict[str, Any]]:
        return json.loads(self.run("stack", "export"))["deployment"].get("resources", [])


def create_stack(cli: str, folder: Path, program: str, providers: str) -> CliStack:
    options = {"name": "conf", "main": ".", "runtime": {"name": "python", "options": {"virtualenv": sys.prefix}}}
    (folder / "Pulumi.yaml").write_text(json.dumps(options))
    (folder / "__main__.py").write_text(program)
    (folder / "backend").mkdir()
    env = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "PULUMI_"))} | {
        "PULUMI_BACKEND_URL": f"file://{folder}/backend",
        "PULUMI_CONFIG_PASSPHRASE": "conformance",
        "PULUMI_DEBUG_PROVIDERS": providers,
        "PULUMI_HOME": str(folder / "home"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "KUBECONFIG": "/nonexistent",
        "PATH": f"{Path(cli).parent}:{os.environ['PATH']}",
    }
    new_stack = CliStack(cli, folder, env)
    new_stack.run("stack", "init", "dev")
    return new_stack


ALL_KINDS = [
    "Bucket",
    "BucketLifecycleConfiguration",
    "BucketOwnershipControls",
    "BucketPolicy",
    "BucketPublicAccessBlock",
    "BucketServerSideEncryptionConfiguration",
    "BucketVersioning",
    "Role",
    "RolePolicy",
]


def test_the_whole_life_of_an_aws_stack(pulumi_cli: str, tmp_path: Path, aws: Any, aws_port: int) -> None:
    dev = create_stack(pulumi_cli, tmp_path, AWS_PROGRAM, f"aws:{aws_port}")
    name = f"b-{uuid4().hex[:12]}"
    for key, value in aws.provider_args.items():
        dev.run("config", "set", f"aws:{key}", value)
    dev.run("config", "set", "name", name)
    s3, iam = aws.client("s3"), aws.client("iam")

    dev.run("preview")
    created = dev.changes("up")["created"]
    assert created == ALL_KINDS
    assert dev.run("stack", "output", "arn").strip() == f"arn:aws:s3:::{name}"
    dev.run("up", "--yes", "--skip-preview", "--expect-no-changes")
    dev.run("preview", "--refresh", "--expect-no-changes")

    s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Suspended"})
    s3.delete_bucket_policy(Bucket=name)
    iam.tag_role(RoleName=name, Tags=[{"Key": "owner", "Value": "nobody"}])
    dev.run("preview", "--refresh", "--expect-no-changes", expected_code=7)
    healed = dev.changes("up", "--refresh")
    assert set(healed["updated"]) >= {"BucketVersioning", "Role"}
    assert "BucketPolicy" in healed["created"]
    assert s3.get_bucket_versioning(Bucket=name)["Status"] == "Enabled"
    assert json.loads(s3.get_bucket_policy(Bucket=name)["Policy"])["Statement"][0]["Sid"] == "TlsOnly"
    dev.run("preview", "--refresh", "--expect-no-changes")

    dev.run("config", "set", "days", "7")
    dev.run("config", "set", "owner", "ops")
    assert dev.changes("up")["updated"] == ["Bucket", "BucketLifecycleConfiguration", "Role"]

    dev.run("config", "set", "name", f"{name}-2")
    assert dev.changes("up")["replaced"] == ALL_KINDS
    with pytest.raises(s3.exceptions.ClientError):
        s3.head_bucket(Bucket=name)

    s3.put_object(Bucket=f"{name}-2", Key="a", Body=b"1")
    dev.run("destroy", "--yes", "--skip-preview")
    assert dev.state() == []
    assert f"{name}-2" not in [b["Name"] for b in s3.list_buckets()["Buckets"]]


def test_a_real_account_is_refused_in_one_line(pulumi_cli: str, tmp_path: Path, aws_port: int) -> None:
    dev = create_stack(
        pulumi_cli, tmp_path, "import pulumi_aws as aws\naws.s3.Bucket('b', bucket='b')\n", f"aws:{aws_port}"
    )
    dev.run("config", "set", "aws:region", "us-east-1")
    output = dev.run("preview", expected_code=1)
    assert "only talks to a running sandbox" in output
    # The CLI shows where it interrupted the program. The provider prints only the sentence.
    assert "lakewright_sandbox/providers" not in output


def test_a_bucket_is_imported(pulumi_cli: str, tmp_path: Path, aws: Any, aws_port: int) -> None:
    name = f"b-{uuid4().hex[:12]}"
    aws.client("s3").create_bucket(Bucket=name)
    program = (
        "import pulumi, pulumi_aws as aws\n"
        f"aws.s3.Bucket('b', bucket={name!r}, opts=pulumi.ResourceOptions(import_={name!r}))\n"
    )
    dev = create_stack(pulumi_cli, tmp_path, program, f"aws:{aws_port}")
    for key, value in aws.provider_args.items():
        dev.run("config", "set", f"aws:{key}", value)
    assert "imported" in dev.run("up", "--yes", "--skip-preview")
    dev.run("preview", "--refresh", "--expect-no-changes")
    dev.run("destroy", "--yes", "--skip-preview")


def replace_random_parts(resource: dict[str, Any]) -> dict[str, Any]:
    """Return a recorded resource without the parts that differ in every run."""
    random = re.compile(r"(auto-named|pulumi-kubernetes)-[0-9a-f]{8}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
    stable_fields = {
        key: value for key, value in resource.items() if key not in ("created", "modified", "sourcePosition")
    }
    return json.loads(random.sub("RANDOM", json.dumps(stable_fields, sort_keys=True)))


def test_the_kubernetes_program_leaves_the_recorded_state(
    pulumi_cli: str, tmp_path: Path, kubernetes_port: int
) -> None:
    program = (CASE / "program.py").read_text().replace('"rendered"', repr(str(tmp_path / "rendered")))
    dev = create_stack(pulumi_cli, tmp_path, program, f"kubernetes:{kubernetes_port}")
    dev.run("up", "--yes", "--skip-preview")
    state = json.loads(json.dumps(dev.state()).replace(str(tmp_path / "rendered"), "rendered"))
    recorded_resources = json.loads((CASE / "state.json").read_text())
    by_urn = {r["urn"]: replace_random_parts(r) for r in state}
    for expected in recorded_resources:
        assert {k: by_urn[expected["urn"]].get(k) for k in expected} == replace_random_parts(expected)
    assert len(state) == len(recorded_resources)
    written = list((tmp_path / "rendered" / "1-manifest").iterdir())
    assert len(written) == len(list((CASE / "rendered").iterdir()))

    dev.run("up", "--yes", "--skip-preview", "--expect-no-changes")
    dev.run("preview", "--refresh", "--expect-no-changes")
    (tmp_path / "__main__.py").write_text(program.replace('"replicas": 1', '"replicas": 2'))
    assert dev.changes("up")["updated"] == ["Deployment"]
    dev.run("destroy", "--yes", "--skip-preview")
    assert [p for p in (tmp_path / "rendered").rglob("*") if p.is_file()] == []


def test_a_secret_in_a_manifest_raises_a_warning(pulumi_cli: str, tmp_path: Path, kubernetes_port: int) -> None:
    program = (
        "import pulumi, pulumi_kubernetes as k8s\n"
        f"provider = k8s.Provider('render', render_yaml_to_directory={str(tmp_path / 'rendered')!r})\n"
        "k8s.core.v1.Secret('s', metadata={'name': 's'}, string_data={'a': pulumi.Output.secret('hidden')},\n"
        "    opts=pulumi.ResourceOptions(provider=provider))\n"
    )
    dev = create_stack(pulumi_cli, tmp_path, program, f"kubernetes:{kubernetes_port}")
    assert "rendered YAML will contain a secret value in plaintext" in dev.run("up", "--yes", "--skip-preview")
    exported = dev.run("stack", "export")
    assert "hidden" not in exported
    assert "aGlkZGVu" not in exported
