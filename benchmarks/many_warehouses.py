"""100 warehouses with 3 namespaces each: up, preview with refresh and destroy, against plain httpx doing the same."""

from __future__ import annotations

import configparser
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import httpx

from benchmarks.ground import Ground
from benchmarks.measure import Row, measure_seconds
from benchmarks.stamped import Stamped, Times, run_plugins

TARGET = 2.0
COUNT = 100
NAMES = ("results", "statistics", "logs")
AT_A_TIME = 16
BUCKET = "lakewright-many"
PROJECT = "many"
PREVIEWS = 3


def measure(ground: Ground) -> list[Row]:
    keys = configparser.ConfigParser()
    keys.read(ground.sandbox["credentials_file"])
    admin = keys["admin"]
    os.environ |= {"BENCH_KEY_ID": admin["aws_access_key_id"], "BENCH_KEY": admin["aws_secret_access_key"]}
    plain = Plain(ground)
    plain.prepare(dict(admin))
    program = ground.program("many_warehouses", plain.settings)
    stack_options = ("--stack", "bench", "-C", str(program))
    reference = {"create": measure_seconds(plain.create)}
    reference["no-op preview with refresh"] = min(measure_seconds(plain.read) for _ in range(PREVIEWS))
    reference["destroy"] = measure_seconds(plain.delete)
    noop = ("preview", "--refresh", "--expect-no-changes", *stack_options)
    with run_plugins(ground, "pulumi-python") as stamped:
        stamped.run("preview", *stack_options)  # the first call imports modules, which belongs to the start
        ours = {"create": stamped.run("up", "--yes", *stack_options)}
        ours["no-op preview with refresh"] = min(
            (stamped.run(*noop) for _ in range(PREVIEWS)), key=lambda times: times.work
        )
        ours["destroy"] = stamped.run("destroy", "--yes", *stack_options)
        alone = _measure_without_calls(ground, stamped)
    note = (
        f"running plugin; process start and imports are another {{:.2f}} s; reference: {AT_A_TIME} calls at a time; "
        "as many resources whose provider calls nobody: {:.2f} s"
    )
    return [
        Row(
            f"{COUNT} warehouses: {verb}",
            times.work,
            reference[verb],
            TARGET,
            note=note.format(times.whole - times.work, alone[verb].work),
        )
        for verb, times in ours.items()
    ]


def _measure_without_calls(ground: Ground, stamped: Stamped) -> dict[str, Times]:
    """Measure the cost of SDK and engine alone, the lower limit for any provider."""
    stack_options = ("--stack", "bench", "-C", str(ground.program("nothing", {"count": str(COUNT * (1 + len(NAMES)))})))
    stamped.run("preview", *stack_options)
    created = stamped.run("up", "--yes", *stack_options)
    previews = (stamped.run("preview", "--refresh", "--expect-no-changes", *stack_options) for _ in range(PREVIEWS))
    return {
        "create": created,
        "no-op preview with refresh": min(previews, key=lambda times: times.work),
        "destroy": stamped.run("destroy", "--yes", *stack_options),
    }


class Plain:
    """Send the same calls concurrently, without state and checks."""

    def __init__(self, ground: Ground) -> None:
        self._sandbox = ground.sandbox
        limits = httpx.Limits(max_connections=AT_A_TIME, max_keepalive_connections=AT_A_TIME)
        self._http = httpx.Client(base_url=ground.sandbox["lakekeeper"]["endpoint"], limits=limits, timeout=120)
        self._pool = ThreadPoolExecutor(AT_A_TIME)
        self._warehouses: list[str] = []

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings of the program."""
        aws = self._sandbox["aws"]
        lakekeeper = self._sandbox["lakekeeper"]["endpoint"]
        return {
            "endpoint": lakekeeper,
            "s3": aws["endpoint"],
            "region": aws["region"],
            "bucket": BUCKET,
            "project": PROJECT,
        }

    def prepare(self, admin: dict[str, str]) -> None:
        """Create the project and the bucket."""
        aws = self._sandbox["aws"]
        s3 = boto3.Session(**admin, region_name=aws["region"]).client("s3", endpoint_url=aws["endpoint"])
        s3.create_bucket(Bucket=BUCKET)
        self._call("POST", "/management/v1/project", {"project-id": PROJECT, "project-name": PROJECT})

    def create(self) -> None:
        self._warehouses = list(self._pool.map(self._create_one, range(COUNT)))
        list(self._pool.map(self._create_namespace, [(one, name) for one in self._warehouses for name in NAMES]))

    def read(self) -> None:
        response = self._call("GET", "/management/v1/warehouse?warehouseStatus=active&warehouseStatus=inactive")
        warehouse_ids = [warehouse["id"] for warehouse in response["warehouses"]]
        list(self._pool.map(self._read_namespaces, warehouse_ids))

    def delete(self) -> None:
        list(self._pool.map(self._delete_namespace, [(one, name) for one in self._warehouses for name in NAMES]))
        list(self._pool.map(lambda one: self._call("DELETE", f"/management/v1/warehouse/{one}"), self._warehouses))

    def _create_one(self, number: int) -> str:
        aws = self._sandbox["aws"]
        profile = {
            "type": "s3",
            "bucket": BUCKET,
            "key-prefix": f"many/{number}",
            "region": aws["region"],
            "endpoint": aws["endpoint"],
            "flavor": "s3-compat",
            "path-style-access": True,
            "sts-enabled": False,
        }
        credential = {
            "type": "s3",
            "credential-type": "access-key",
            "aws-access-key-id": os.environ["BENCH_KEY_ID"],
            "aws-secret-access-key": os.environ["BENCH_KEY"],
        }
        body = {"warehouse-name": f"warehouse-{number}", "storage-profile": profile, "storage-credential": credential}
        return self._call("POST", "/management/v1/warehouse", body)["id"]

    def _create_namespace(self, of: tuple[str, str]) -> None:
        self._call("POST", f"/catalog/v1/{of[0]}/namespaces", {"namespace": [of[1]]})

    def _read_namespaces(self, warehouse: str) -> None:
        self._call("GET", f"/catalog/v1/{warehouse}/namespaces?returnUuids=true&returnProtectionStatus=true")

    def _delete_namespace(self, of: tuple[str, str]) -> None:
        self._call("DELETE", f"/catalog/v1/{of[0]}/namespaces/{of[1]}")

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        response = self._http.request(method, path, json=body, headers={"x-project-id": PROJECT}).raise_for_status()
        return response.json() if response.content else {}
