"""A preview with refresh that finds nothing, against the same reads by plain httpx and boto3."""

from __future__ import annotations

import configparser
import contextlib
import json
from collections.abc import Callable
from typing import Any

import boto3
import httpx

from benchmarks.ground import Ground
from benchmarks.measure import Row, timed
from demo.stage import REPOSITORY, STACK

TIMES = 9
TARGET = 3.0

Read = Callable[[dict[str, Any]], object]


def measure(ground: Ground) -> list[Row]:
    starts = ground.program("starts", {"environment": str(REPOSITORY / "environments" / "sandbox.yaml")})
    ground.lakewright("up", "--yes", "--stack", "bench", "-C", str(starts))
    preview = ("preview", "--refresh", "--expect-no-changes")
    plain = Plain(ground)
    resources = _resources(ground, "--stack", STACK)
    in_start = _resources(ground, "--stack", "bench", "-C", str(starts))
    whole: list[float] = []
    start: list[float] = []
    reference: list[float] = []
    reference_in_start: list[float] = []
    for _ in range(TIMES):
        whole.append(timed(lambda: ground.lakewright(*preview, "--stack", STACK)))
        start.append(timed(lambda: ground.lakewright(*preview, "--stack", "bench", "-C", str(starts))))
        reference.append(timed(lambda: [plain.read(resource) for resource in resources if plain.reads(resource)]))
        reference_in_start.append(timed(lambda: [plain.read(one) for one in in_start if plain.reads(one)]))
    apart = "the same command on a stack with one object of each provider"
    # The least of each: what else the machine does only ever adds, and a difference would carry it twice.
    # What the starting stack reads is taken from both sides.
    work = min(whole) - min(start)
    plainly = min(reference) - min(reference_in_start)
    note = f"{len(resources)} resources; process start and imports are in the row below"
    return [
        Row("no-op preview with refresh", work, plainly, TARGET, note=note),
        Row("no-op preview with refresh, whole process", min(whole), min(reference), None, note="start included"),
        Row("process start and imports", min(start), None, None, note=apart),
    ]


def _resources(ground: Ground, *stack: str) -> list[dict[str, Any]]:
    return json.loads(ground.stage.output("lakewright", "stack", "export", *stack))["deployment"]["resources"]


class Plain:
    """Every read that a refresh of the demo's stack makes, straight from the client libraries."""

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

    def reads(self, resource: dict[str, Any]) -> bool:
        return self._key(resource) in self._by_type

    def read(self, resource: dict[str, Any]) -> object:
        return self._by_type[self._key(resource)](resource)

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
