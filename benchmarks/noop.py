"""Commands of the demo's stack with nothing to change.

A preview with refresh, against the same reads by plain httpx and boto3. `up`: in a warm process, by itself, and with
the Pulumi CLI.
"""

from __future__ import annotations

import configparser
import contextlib
import json
import os
import shutil
from collections.abc import Callable
from typing import Any

import boto3
import httpx

from benchmarks.ground import EMBEDDED, Ground
from benchmarks.measure import Row, measure_seconds
from benchmarks.stamped import PLUGINS, Times, run_plugins
from demo.stage import BIN, STACK

TIMES = 7
TARGET = 3.0
WARM_SECONDS = 0.8
UP = ("up", "--yes", "--stack", STACK)

Read = Callable[[dict[str, Any]], object]


def measure(ground: Ground) -> list[Row]:
    return [*_preview_rows(ground), *_up_rows(ground)]


def _preview_rows(ground: Ground) -> list[Row]:
    resources = _resources(ground)
    command = ("preview", "--refresh", "--expect-no-changes", "--stack", STACK)
    as_typed = min(measure_seconds(lambda: ground.lakewright(*command)) for _ in range(3))
    ours: list[Times] = []
    plainly: list[float] = []
    with run_plugins(ground, *PLUGINS) as stamped:
        stamped.run(*command)  # the first call imports modules, which belongs to the start
        for _ in range(TIMES):
            ours.append(stamped.run(*command))
            plainly.append(measure_seconds(lambda: PlainReader(ground).read(resources)))
    # The least of each: what else the machine does only ever adds.
    work, whole = min(one.work for one in ours), min(one.whole for one in ours)
    note = f"{len(resources)} resources, running plugins; starts and imports are in the rows below"
    hidden = "of what is not hidden behind these"
    return [
        Row("no-op preview with refresh", work, min(plainly), TARGET, note=note),
        Row("its process start and imports", whole - work, None, None, note="of command line and program"),
        Row("its plugins' start", max(0.0, as_typed - whole), None, None, note=hidden),
        Row("the whole command", as_typed, None, None, note="as typed, all starts included"),
    ]


def _up_rows(ground: Ground) -> list[Row]:
    """Measure all in turns, and take the least time of each: other work of the machine only adds to it."""
    warm_environment = ground.warm_up(*UP)
    has_cli = shutil.which("pulumi") is not None
    warm: list[float] = []
    cold: list[float] = []
    cli: list[float] = []
    with run_plugins(ground, "aws", "kubernetes") as plugins:
        for _ in range(TIMES):
            warm.append(measure_seconds(lambda: _up(ground, warm_environment)))
            cold.append(measure_seconds(lambda: _up(ground, {"LAKEWRIGHT_WARM": "0"})))
            if has_cli:
                cli.append(measure_seconds(lambda: _up_on_the_cli(ground, plugins.attached)))
    rows = [
        Row("no-op of the demo's stack, warm", min(warm), WARM_SECONDS, 1.0, note="reference: the limit"),
        Row("the same beside a cold run", min(warm), min(cold), None, note="reference: without a warm process"),
    ]
    if cli:
        rows += [
            Row("the same beside the Pulumi CLI", min(warm), min(cli), None, note="its plugins run already"),
            Row("a cold run beside the Pulumi CLI", min(cold), min(cli), None, note="its plugins run already"),
        ]
    return rows


def _up(ground: Ground, environment: dict[str, str]) -> None:
    ground.run([str(BIN / "lakewright"), *UP, *EMBEDDED], environment)


def _up_on_the_cli(ground: Ground, attached: str) -> None:
    environment = {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "PULUMI_DEBUG_PROVIDERS": attached,
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    command = ["pulumi", *UP, "--skip-preview", "--non-interactive", "--expect-no-changes"]
    ground.run(command, environment)


def _resources(ground: Ground) -> list[dict[str, Any]]:
    exported = ground.stage.output("lakewright", "stack", "export", "--stack", STACK)
    return json.loads(exported)["deployment"]["resources"]


class PlainReader:
    """Send every read of a refresh of the demo's stack with the client libraries, in sequence."""

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
        response = self._http.get(path, headers={"x-project-id": project} if project else {})
        return response.raise_for_status().json()
