"""A unit of Texera uses its warehouse: Iceberg's Java catalog with Texera's own properties, through the pod's proxy.

The catalog enforces grants. Neither the client nor its container has a credential.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.requests import TokenPrincipal
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.session import jars
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from unit_pod import UnitPod, cannot_unshare, read_manifests

from tests.nginx_process import AS_ROOT, MISSING_NJS, NGINX, find_free_port
from tests.tenant_project import Tenant, create_project, new_name, tenant_spec

REFUSED = MISSING_NJS or cannot_unshare()
pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.stand_in("plays the tokens of ServiceAccounts"),
    pytest.mark.skipif(REFUSED is not None, reason=str(REFUSED)),
]

UID = "11111111-2222-3333-4444-{number:012}"
NAMESPACE = "operator-port-result"
TABLE = "wid_7_eid_42_globalportid_(logicalOpId=Op-1,layerName=main,portId=0,isInternal=false,isInput=false)_result"


@dataclass
class ServiceAccountTokens:
    """Takes each valid token for its ServiceAccount, as Lakekeeper does after a TokenReview."""

    app: ASGIApp
    valid: dict[str, str] = field(default_factory=dict[str, str])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            token = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
            if token not in self.valid:
                error = {"message": "no valid token", "type": "AuthenticationFailed", "code": 401}
                return await JSONResponse({"error": error}, 401)(scope, receive, send)
            user = self.valid[token]
            scope.setdefault("state", {})["principal"] = TokenPrincipal(user, name=user)
        return await self.app(scope, receive, send)


@dataclass(frozen=True)
class Guarded:
    """A Lakekeeper that enforces grants."""

    endpoint: str
    tokens: ServiceAccountTokens


@pytest.fixture(scope="module")
def guarded(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    settings = Settings(
        database=f"sqlite:///{tmp_path_factory.mktemp('lakekeeper') / 'lakekeeper.db'}",
        aws_endpoint=sandbox.aws.endpoint,
        credentials_file=sandbox.credentials_file,
        aws_system_identity=True,
        authorizer="openfga",
    )
    tokens = ServiceAccountTokens(create_app(settings), {"operator": "oidc~operator"})
    with serve(tokens) as endpoint:
        headers = {"authorization": "Bearer operator"}
        accepted = {"accept-terms-of-use": True, "is-operator": True}
        httpx.post(f"{endpoint}/management/v1/bootstrap", json=accepted, headers=headers).raise_for_status()
        yield Guarded(endpoint, tokens)


def declare(sandbox: Sandbox, guarded: Guarded, folder: Path, number: int, **changes: Any) -> Tenant:
    """Deploy a tenant with a unit of Texera, whose ServiceAccount has a known uid; return the tenant."""
    environment = {
        "sandbox": str(sandbox.dir),
        "lakekeeper": {
            "endpoint": guarded.endpoint,
            "catalog_uri": f"{guarded.endpoint}/catalog",
            "auth": {"kind": "token", "token": "env:STACK_TOKEN"},
            "jobs_auth": {"kind": "token-file", "path": "/var/run/secrets/lakekeeper/token"},
            "jobs_subject": None,
        },
        "kubernetes": {"render_to": str(folder / "rendered"), "trial": True},
    }
    name = new_name()
    project = folder / name
    create_project(project, environment)
    unit = {
        "name": "workflows",
        "runtime": "texera",
        "warehouses": "all",
        "identity": {"service_account_uid": UID.format(number=number)},
    }
    warehouse = {"name": "executions", "namespaces": {"preset": "texera"}, "deletion": "purge"}
    spec = tenant_spec(name, {"backend": "aws", "bucket": f"{name}-lakehouse"})
    tenant = Tenant(project, sandbox, spec | {"warehouses": [warehouse], "computing_units": [unit]} | changes)
    tenant.environ["STACK_TOKEN"] = "operator"
    tenant.write()
    tenant.output("stack", "init")
    tenant.up()
    return tenant


@dataclass(frozen=True)
class RunningTexeraUnit:
    """The proxy of a unit's pod, and the variables of the unit's container."""

    tenant: Tenant
    pod: UnitPod
    variables: dict[str, str]

    def present_token(self, token: str) -> None:
        self.pod.renew("token", "token", token)


@pytest.fixture(scope="module")
def unit(sandbox: Sandbox, guarded: Guarded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningTexeraUnit]:
    tenant = declare(sandbox, guarded, tmp_path_factory.mktemp("first"), 1)
    guarded.tokens.valid |= {f"first-{count}": f"kubernetes~{UID.format(number=1)}" for count in range(3)}
    with run_proxy(tenant, tmp_path_factory.mktemp("pod"), token="first-0") as running:
        yield running


@contextmanager
def run_proxy(tenant: Tenant, folder: Path, token: str) -> Generator[RunningTexeraUnit, None, None]:
    """Run the proxy of a rendered pod. Free ports replace its ports, which belong to the pod's network."""
    port, probe_port = find_free_port(), find_free_port()
    text = yaml.safe_dump_all(read_manifests(tenant.folder.parent / "rendered"))
    for pod_port, free_port in ((8181, port), (8182, probe_port)):
        text = text.replace(str(pod_port), str(free_port))
    pod = UnitPod(
        [manifest for manifest in yaml.safe_load_all(text) if manifest],
        folder,
        secrets={},
        token=token,
        image={"PATH": f"{Path(str(NGINX)).parent}:/usr/bin:/bin"},
        container_name="catalog-proxy",
        arguments=AS_ROOT,
    )
    variables = {variable["name"]: variable["value"] for variable in pod.find_container("texera")["env"]}
    with pod.run(port):
        yield RunningTexeraUnit(tenant, pod, variables)


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    """Start a JVM with Iceberg's jars, without Spark."""
    conf = SparkConf(loadDefaults=False).set("spark.driver.extraClassPath", ":".join(map(str, jars.fetch())))
    gateway: JavaGateway = launch_gateway(conf)
    yield gateway.jvm
    gateway.shutdown()
    gateway.proc.kill()  # type: ignore[attr-defined]  # PySpark's own
    gateway.proc.wait()  # type: ignore[attr-defined]


class TexeraCatalog:
    """Texera's use of Iceberg's RESTCatalog: its properties, and the calls of its IcebergUtil and writers."""

    def __init__(self, jvm: Any, variables: dict[str, str]) -> None:
        self._jvm, self._iceberg = jvm, jvm.org.apache.iceberg
        properties = jvm.java.util.HashMap(
            {
                "warehouse": variables["STORAGE_ICEBERG_CATALOG_REST_WAREHOUSE_NAME"],
                "uri": variables["STORAGE_ICEBERG_CATALOG_REST_URI"],
                "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            }
        )
        self.catalog = self._iceberg.rest.RESTCatalog()
        self.catalog.initialize("texera_iceberg", properties)

    def create_namespace(self, name: str) -> bool:
        """Return whether the namespace is new. Texera calls this before each table, and ignores a 409."""
        try:
            self.catalog.createNamespace(
                self._iceberg.catalog.Namespace.of(self._strings(name)), self._jvm.java.util.HashMap()
            )
        except Py4JJavaError as error:
            if "AlreadyExistsException" in error.java_exception.getClass().getName():
                return False
            raise
        return True

    def identify(self, namespace: str, table: str) -> Any:
        return self._iceberg.catalog.TableIdentifier.of(self._strings(namespace, table))

    def create_table(self, identifier: Any) -> Any:
        fields = self._jvm.java.util.ArrayList()
        fields.append(
            self._iceberg.types.Types.NestedField.optional(1, "line", self._iceberg.types.Types.StringType.get())
        )
        return self.catalog.createTable(
            identifier, self._iceberg.Schema(fields), self._iceberg.PartitionSpec.unpartitioned()
        )

    def write(self, table: Any, lines: list[str]) -> None:
        """Write one Parquet file at the table's location, and commit it."""
        output = table.io().newOutputFile(f"{table.location()}/writer_0")
        encrypted = self._iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(output)
        factory = self._iceberg.data.GenericFileWriterFactory.Builder(table).dataSchema(table.schema()).build()
        writer = factory.newDataWriter(encrypted, table.spec(), None)
        for line in lines:
            record = self._iceberg.data.GenericRecord.create(table.schema())
            record.setField("line", line)
            writer.write(record)
        writer.close()
        table.newAppend().appendFile(writer.toDataFile()).commit()

    def read(self, identifier: Any) -> list[str]:
        rows = self._iceberg.data.IcebergGenerics.read(self.catalog.loadTable(identifier)).build()
        records, lines = rows.iterator(), list[str]()
        while records.hasNext():
            lines.append(records.next().getField("line"))
        rows.close()
        return sorted(lines)

    def _strings(self, *texts: str) -> Any:
        array = self._jvm.java.lang.reflect.Array.newInstance(
            self._jvm.java.lang.Class.forName("java.lang.String"), len(texts)
        )
        for index, text in enumerate(texts):
            array[index] = text
        return array


def test_unit_creates_writes_reads_and_drops_a_table(jvm: Any, unit: RunningTexeraUnit) -> None:
    unit.present_token("first-0")
    texera = TexeraCatalog(jvm, unit.variables)
    identifier = texera.identify(NAMESPACE, TABLE)

    assert texera.create_namespace(NAMESPACE) is False, "the stack made it"
    table = texera.create_table(identifier)
    texera.write(table, ["ü", "a"])
    assert texera.read(identifier) == ["a", "ü"]
    assert texera.catalog.dropTable(identifier) is True
    assert texera.catalog.tableExists(identifier) is False


def test_unit_creates_a_namespace_of_its_own(jvm: Any, unit: RunningTexeraUnit) -> None:
    """A newer Texera may write to another namespace, which no spec declares."""
    unit.present_token("first-0")
    texera = TexeraCatalog(jvm, unit.variables)
    identifier = texera.identify("operator-new-kind", "t")

    assert texera.create_namespace("operator-new-kind") is True
    assert texera.create_namespace("operator-new-kind") is False
    texera.write(texera.create_table(identifier), ["a"])
    assert texera.read(identifier) == ["a"]
    assert texera.catalog.dropTable(identifier) is True


def test_renewed_token_is_used_by_an_open_catalog(jvm: Any, guarded: Guarded, unit: RunningTexeraUnit) -> None:
    """Kubernetes renews the token in its file. The unit keeps its catalog, which has no token."""
    unit.present_token("first-1")
    texera = TexeraCatalog(jvm, unit.variables)
    identifier = texera.identify(NAMESPACE, "wid_7_eid_43_runtimestatistics")

    del guarded.tokens.valid["first-1"]
    with pytest.raises(Py4JJavaError, match="NotAuthorizedException"):
        texera.catalog.tableExists(identifier)
    unit.present_token("first-2")

    texera.write(texera.create_table(identifier), ["a"])
    assert texera.read(identifier) == ["a"]


def test_token_of_another_tenant_is_refused(
    jvm: Any, sandbox: Sandbox, guarded: Guarded, unit: RunningTexeraUnit, tmp_path: Path
) -> None:
    declare(sandbox, guarded, tmp_path, 2)
    guarded.tokens.valid["second"] = f"kubernetes~{UID.format(number=2)}"
    unit.present_token("first-0")
    opened = TexeraCatalog(jvm, unit.variables)
    identifier = opened.identify(NAMESPACE, "wid_7_eid_44_runtimestatistics")
    opened.create_table(identifier)

    unit.present_token("second")

    with pytest.raises(Py4JJavaError, match=r"Forbidden|NoSuchWarehouse"):
        TexeraCatalog(jvm, unit.variables)
    with pytest.raises(Py4JJavaError, match=r"Forbidden|NoSuch"):
        opened.catalog.loadTable(identifier)
    with pytest.raises(Py4JJavaError, match=r"Forbidden|NoSuch"):
        opened.create_namespace("of-the-other")


def test_management_is_out_of_reach_through_the_proxy(unit: RunningTexeraUnit) -> None:
    unit.present_token("first-0")
    proxy = unit.variables["STORAGE_ICEBERG_CATALOG_REST_URI"].removesuffix("/catalog")

    response = httpx.get(f"{proxy}/management/v1/whoami")

    assert (response.status_code, response.json()["error"]["type"]) == (404, "NotForwarded")


def test_unit_has_no_token(unit: RunningTexeraUnit) -> None:
    texera = unit.pod.find_container("texera")

    assert "/var/run/secrets" not in json.dumps(texera["volumeMounts"])
    assert "first-" not in json.dumps(texera) + str(unit.pod.manifests)


def read_config(unit: RunningTexeraUnit, warehouse: str) -> int:
    """Return the status of a catalog's first request, for the warehouse that an execution chose."""
    uri = unit.variables["STORAGE_ICEBERG_CATALOG_REST_URI"]
    return httpx.get(f"{uri}/v1/config", params={"warehouse": warehouse}).status_code


def test_executions_choose_warehouses_of_a_shared_project(
    jvm: Any, sandbox: Sandbox, guarded: Guarded, unit: RunningTexeraUnit, tmp_path: Path
) -> None:
    """Texera makes a warehouse for each user in the default project, and names one for each execution (texera#7473).

    A second stack plays Texera: no grant of the first stack reaches its warehouse.
    """
    shared, operator = {"shared": True}, {"authorization": "Bearer operator"}
    tenant = declare(sandbox, guarded, tmp_path / "tenant", 3, project=shared)
    user = f"kubernetes~{UID.format(number=3)}"
    guarded.tokens.valid["third"] = user
    warehouse = {"name": "user-1-5", "deletion": "purge"}
    texera = declare(sandbox, guarded, tmp_path / "texera", 4, project=shared, warehouses=[warehouse])
    warehouse_id = texera.catalog_config().warehouses[0].id
    grants = {"writes": [{"type": privilege, "user": user} for privilege in ("select", "create", "modify")]}

    (tmp_path / "pod").mkdir()
    with run_proxy(tenant, tmp_path / "pod", token="third") as shared_unit:
        assert read_config(shared_unit, "executions") == 200
        assert read_config(shared_unit, "user-1-5") in {403, 404}
        url = f"{guarded.endpoint}/management/v1/permissions/warehouse/{warehouse_id}/assignments"
        httpx.post(url, json=grants, headers=operator).raise_for_status()

        for name in ("executions", "user-1-5"):
            variables = shared_unit.variables | {"STORAGE_ICEBERG_CATALOG_REST_WAREHOUSE_NAME": name}
            catalog = TexeraCatalog(jvm, variables)
            catalog.create_namespace(NAMESPACE)
            identifier = catalog.identify(NAMESPACE, "wid_7_eid_45_runtimestatistics")
            catalog.write(catalog.create_table(identifier), [name])
            assert catalog.read(identifier) == [name]

    # The proxy of a tenant with a project of its own asks for this name in that project.
    unit.present_token("first-0")
    assert read_config(unit, "user-1-5") == 404
