"""A preview with refresh that finds nothing, against the same reads by plain httpx and boto3."""

from __future__ import annotations

import configparser
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import httpx

from benchmarks.ground import EMBEDDED, Ground
from benchmarks.measure import Row, timed
from demo.stage import REPOSITORY, STACK

TIMES = 7
TARGET = 3.0
HERE = Path(__file__).parent
PLUGINS = {
    "aws": ("-m", "lakewright_sandbox.providers", "aws"),
    "kubernetes": ("-m", "lakewright_sandbox.providers", "kubernetes"),
    "pulumi-python": (str(HERE / "dynamic_plugin.py"),),
}

Read = Callable[[dict[str, Any]], object]


def measure(ground: Ground) -> list[Row]:
    resources = _resources(ground)
    words = ("preview", "--refresh", "--expect-no-changes", "--stack", STACK)
    as_typed = min(timed(lambda: ground.lakewright(*words)) for _ in range(3))
    stamps = ground.stage.folder / "stamps"
    work: list[float] = []
    whole: list[float] = []
    plainly: list[float] = []
    with _plugins(ground) as attached:
        _preview(ground, attached, stamps, words)  # what a plugin imports at its first call is part of its start
        for _ in range(TIMES):
            whole.append(timed(lambda: _preview(ground, attached, stamps, words)))
            work.append(float(stamps.read_text()))
            plainly.append(timed(lambda: Plain(ground).read(resources)))
    # The least of each: what else the machine does only ever adds.
    note = f"{len(resources)} resources, running plugins; starts and imports are in the rows below"
    return [
        Row("no-op preview with refresh", min(work), min(plainly), TARGET, note=note),
        Row("its process start and imports", min(whole) - min(work), None, None, note="of command line and program"),
        Row(
            "its plugins' start", max(0.0, as_typed - min(whole)), None, None, note="of what is not hidden behind these"
        ),
        Row("the whole command", as_typed, None, None, note="as typed, all starts included"),
    ]


def _preview(ground: Ground, attached: str, stamps: Path, words: tuple[str, ...]) -> None:
    settings = ground.stage.settings() | {"PULUMI_DEBUG_PROVIDERS": attached}
    command = [sys.executable, str(HERE / "stamped_cli.py"), str(stamps), *words, *EMBEDDED]
    subprocess.run(command, cwd=REPOSITORY, env=os.environ | settings, check=True, capture_output=True)


@contextlib.contextmanager
def _plugins(ground: Ground) -> Iterator[str]:
    """The plugins, started and waiting: what PULUMI_DEBUG_PROVIDERS says of them."""
    with contextlib.ExitStack() as running:
        ports: list[str] = []
        for name, command in PLUGINS.items():
            environment = os.environ | ground.stage.settings()
            plugin = running.enter_context(
                subprocess.Popen(
                    [sys.executable, *command], cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True
                )
            )
            running.callback(plugin.kill)
            assert plugin.stdout is not None
            ports.append(f"{name}:{int(plugin.stdout.readline())}")
        yield ",".join(ports)


def _resources(ground: Ground) -> list[dict[str, Any]]:
    exported = ground.stage.output("lakewright", "stack", "export", "--stack", STACK)
    return json.loads(exported)["deployment"]["resources"]


class Plain:
    """Every read that a refresh of the demo's stack makes, straight from the client libraries, one after the other."""

    def __init__(self, ground: Ground) -> None:
        keys = configparser.ConfigParser()
        keys.read(ground.sandbox["credentials_file"])
        session = boto3.Session(**keys["admin"], region_name=ground.sandbox["aws"]["region"])
        endpoint = ground.sandbox["aws"]["endpoint"]
        self._s3 = session.client("s3", endpoint_url=endpoint)
        self._iam = session.client("iam", endpoint_url=endpoint)
        self._http = httpx.Client(base_url=ground.sandbox["lakekeeper"]["endpoint"])
        self._by_type: dict[str, Read] = {
            "aws:s3/bucket:Bucket": lambda r: (self._s3.head_bucket(Bucket=r["id"]), self._tags(r["id"])),
            "aws:s3/bucketVersioning:BucketVersioning": lambda r: self._s3.get_bucket_versioning(Bucket=r["id"]),
            "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": (
                lambda r: self._s3.get_bucket_encryption(Bucket=r["id"])
            ),
            "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": (
                lambda r: self._s3.get_public_access_block(Bucket=r["id"])
            ),
            "aws:s3/bucketPolicy:BucketPolicy": lambda r: self._s3.get_bucket_policy(Bucket=r["id"]),
            "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": (
                lambda r: self._s3.get_bucket_lifecycle_configuration(Bucket=r["id"])
            ),
            "aws:s3/bucketOwnershipControls:BucketOwnershipControls": (
                lambda r: self._s3.get_bucket_ownership_controls(Bucket=r["id"])
            ),
            "aws:iam/role:Role": lambda r: self._iam.get_role(RoleName=r["id"]),
            "aws:iam/rolePolicy:RolePolicy": lambda r: self._iam.get_role_policy(
                RoleName=r["id"].partition(":")[0], PolicyName=r["id"].partition(":")[2]
            ),
            "Bootstrap": lambda _: self._get("/management/v1/info"),
            "Project": lambda r: self._get("/management/v1/project", project=r["id"]),
            "Warehouse": lambda r: self._get(f"/management/v1/warehouse/{r['id']}"),
            "Namespace": lambda r: self._get(
                "/catalog/v1/{}/namespaces/{}?returnUuid=true".format(*r["id"].split("/", 1))
            ),
        }

    def read(self, resources: list[dict[str, Any]]) -> None:
        for resource in resources:
            if read := self._by_type.get(self._key(resource)):
                read(resource)

    def _key(self, resource: dict[str, Any]) -> str:
        kind = resource["type"]
        return kind.rsplit(":", 1)[-1] if "lakekeeper" in kind else kind

    def _tags(self, bucket: str) -> object:
        with contextlib.suppress(self._s3.exceptions.from_code("NoSuchTagSet")):
            return self._s3.get_bucket_tagging(Bucket=bucket)
        return None

    def _get(self, path: str, project: str | None = None) -> object:
        answer = self._http.get(path, headers={"x-project-id": project} if project else {})
        return answer.raise_for_status().json()
