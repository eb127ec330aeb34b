"""A unit of Texera uses its warehouse: Iceberg's Java catalog with Texera's own properties, through the pod's proxy.

The catalog enforces grants. Neither the client nor its container has a credential. `make test-real` runs these tests on
a server that reviews the tokens of the cluster of KUBECONFIG.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import yaml
from guarded_catalog import GuardedCatalog, serve_guarded_catalog, use_real_servers
from lakewright_sandbox.runtime.processes import free_port
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.session import jars
from plain_jvm import run_jvm
from py4j.protocol import Py4JJavaError
from unit_pod import UnitPod, cannot_unshare, read_manifests
from waiting import wait_until

from tests.nginx_process import MISSING_NJS, NGINX
from tests.real_servers import RealServers
from tests.tenant_project import Tenant, create_project, new_name, tenant_spec

REFUSED = MISSING_NJS or cannot_unshare()
pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.any_server,
    pytest.mark.skipif(REFUSED is not None, reason=str(REFUSED)),
]

DIGEST = f"sha256:{64 * '0'}"
CLUSTER: dict[str, Any] = {
    "trial": False,
    "images": {"texera": f"registry.example/texera@{DIGEST}"},
    "texera": {
        "database": {
            "address": "db.texera.svc:5432/texera_db",
            "username": "texera_unit",
            "password": {"name": "texera-unit", "key": "password"},
        },
        "jwt_secret": {"name": "texera-unit", "key": "jwt-secret"},
        "proxy_image": f"registry.example/nginx-unprivileged@{DIGEST}",
    },
}
"""Settings of a cluster in production."""
SECRETS = {"texera-unit": {"password": "password-of-texera-unit", "jwt-secret": "jwt-secret-of-texera"}}
"""Secrets that the platform team makes in a tenant's namespace."""
NAMESPACE = "operator-port-result"
TABLE = "wid_7_eid_42_globalportid_(logicalOpId=Op-1,layerName=main,portId=0,isInternal=false,isInput=false)_result"


@pytest.fixture(scope="module")
def guarded(
    sandbox: Sandbox, real: RealServers | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GuardedCatalog]:
    """A Lakekeeper that enforces grants: a stand-in, or the user's."""
    catalog = use_real_servers(real) if real else serve_guarded_catalog(sandbox, tmp_path_factory.mktemp("lakekeeper"))
    with catalog as guarded:
        yield guarded


DeclareTenant = Callable[..., Tenant]


@pytest.fixture(scope="module")
def declare(
    sandbox: Sandbox, real: RealServers | None, guarded: GuardedCatalog, tmp_path_factory: pytest.TempPathFactory
) -> DeclareTenant:
    """Deploy a tenant with a unit of Texera, whose ServiceAccount has a known uid; return the tenant."""

    def declare(number: int, **changes: Any) -> Tenant:
        folder = tmp_path_factory.mktemp("tenant")
        name = f"{real.run}-{uuid4().hex[:6]}" if real else new_name()
        kubernetes = {"render_to": str(folder / "rendered"), **CLUSTER}
        create_project(folder / name, {**guarded.environment, "kubernetes": kubernetes})
        unit = {
            "name": "workflows",
            "runtime": "texera",
            "warehouses": "all",
            "identity": {"service_account_uid": guarded.tokens.find_uid(number)},
        }
        warehouse = {"name": "executions", "namespaces": {"preset": "texera"}, "deletion": "purge"}
        spec = tenant_spec(name, real.store if real else {"backend": "aws", "bucket": f"{name}-lakehouse"})
        spec |= {"warehouses": [warehouse], "computing_units": [unit]} | changes
        tenant = Tenant(folder / name, sandbox, spec, environ=dict(guarded.environ), real=real)
        tenant.write()
        tenant.output("stack", "init")
        tenant.up()
        return tenant

    return declare


@dataclass(frozen=True)
class RunningTexeraUnit:
    """The proxy of a unit's pod, and the variables of the unit's container."""

    tenant: Tenant
    pod: UnitPod
    variables: dict[str, str]

    def present_token(self, token: str) -> None:
        self.pod.renew("token", "token", token)


@pytest.fixture(scope="module")
def unit(
    declare: DeclareTenant, guarded: GuardedCatalog, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningTexeraUnit]:
    with run_proxy(declare(1), tmp_path_factory.mktemp("pod"), guarded.tokens.issue(1)) as running:
        yield running


@pytest.fixture
def token(guarded: GuardedCatalog, unit: RunningTexeraUnit) -> str:
    """A new token of the unit, which its pod has."""
    token = guarded.tokens.issue(1)
    unit.present_token(token)
    return token


@contextmanager
def run_proxy(tenant: Tenant, folder: Path, token: str) -> Generator[RunningTexeraUnit, None, None]:
    """Run the proxy of a rendered pod, as the pod's user where the tests run as root.

    Free ports replace its ports, which belong to the pod's network.
    """
    port, probe_port = free_port(), free_port()
    text = yaml.safe_dump_all(read_manifests(tenant.folder.parent / "rendered"))
    for pod_port, test_port in ((8181, port), (8182, probe_port)):
        text = re.sub(rf"\b{pod_port}\b", str(test_port), text)
    pod = UnitPod(
        [manifest for manifest in yaml.safe_load_all(text) if manifest],
        folder,
        secrets=SECRETS,
        token=token,
        image={"PATH": f"{Path(str(NGINX)).parent}:/usr/bin:/bin"},
        container_name="catalog-proxy",
        as_pod_user=True,
    )
    with pod.run(port) as (process, _):
        if security := pod.security:
            expected = (security["runAsUser"], security["runAsGroup"], [security["fsGroup"]])
            assert read_user_and_groups(process.pid) == expected
        yield RunningTexeraUnit(tenant, pod, pod.read_variables("texera"))


def read_user_and_groups(process: int) -> tuple[int, int, list[int]]:
    """Return the user of a process, its group and its supplementary groups."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    user, group = (int(status[name].split()[0]) for name in ("Uid", "Gid"))
    return user, group, [int(text) for text in status["Groups"].split()]


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    """Start a JVM with Iceberg's jars, without Spark."""
    with run_jvm(jars.fetch()) as gateway:
        yield gateway.jvm


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


@pytest.mark.usefixtures("token")
def test_unit_creates_writes_reads_and_drops_a_table(jvm: Any, unit: RunningTexeraUnit) -> None:
    texera = TexeraCatalog(jvm, unit.variables)
    identifier = texera.identify(NAMESPACE, TABLE)

    assert texera.create_namespace(NAMESPACE) is False, "the stack made it"
    table = texera.create_table(identifier)
    texera.write(table, ["ü", "a"])
    assert texera.read(identifier) == ["a", "ü"]
    assert texera.catalog.dropTable(identifier) is True
    assert texera.catalog.tableExists(identifier) is False


@pytest.mark.usefixtures("token")
def test_unit_creates_a_namespace_of_its_own(jvm: Any, unit: RunningTexeraUnit) -> None:
    """A newer Texera may write to another namespace, which no spec declares."""
    texera = TexeraCatalog(jvm, unit.variables)
    identifier = texera.identify("operator-new-kind", "t")

    assert texera.create_namespace("operator-new-kind") is True
    assert texera.create_namespace("operator-new-kind") is False
    texera.write(texera.create_table(identifier), ["a"])
    assert texera.read(identifier) == ["a"]
    assert texera.catalog.dropTable(identifier) is True


def test_renewed_token_is_used_by_an_open_catalog(
    jvm: Any, guarded: GuardedCatalog, unit: RunningTexeraUnit, token: str
) -> None:
    """Kubernetes renews the token in its file. The unit keeps its catalog, which has no token."""
    texera = TexeraCatalog(jvm, unit.variables)
    identifier = texera.identify(NAMESPACE, "wid_7_eid_43_runtimestatistics")
    assert is_authenticated(texera, identifier)

    guarded.tokens.revoke(token)
    wait_until(lambda: not is_authenticated(texera, identifier))
    unit.present_token(guarded.tokens.issue(1))

    texera.write(texera.create_table(identifier), ["a"])
    assert texera.read(identifier) == ["a"]


def is_authenticated(texera: TexeraCatalog, identifier: Any) -> bool:
    """Return whether a request is not refused with 401."""
    try:
        texera.catalog.tableExists(identifier)
    except Py4JJavaError as error:
        if "NotAuthorizedException" in error.java_exception.getClass().getName():
            return False
        raise
    return True


@pytest.mark.usefixtures("token")
def test_token_of_another_tenant_is_refused(
    jvm: Any, declare: DeclareTenant, guarded: GuardedCatalog, unit: RunningTexeraUnit
) -> None:
    declare(2)
    opened = TexeraCatalog(jvm, unit.variables)
    identifier = opened.identify(NAMESPACE, "wid_7_eid_44_runtimestatistics")
    opened.create_table(identifier)

    unit.present_token(guarded.tokens.issue(2))

    with pytest.raises(Py4JJavaError, match=r"Forbidden|NoSuchWarehouse"):
        TexeraCatalog(jvm, unit.variables)
    with pytest.raises(Py4JJavaError, match=r"Forbidden|NoSuch"):
        opened.catalog.loadTable(identifier)
    with pytest.raises(Py4JJavaError, match=r"Forbidden|NoSuch"):
        opened.create_namespace("of-the-other")


@pytest.mark.usefixtures("token")
def test_management_is_out_of_reach_through_the_proxy(unit: RunningTexeraUnit) -> None:
    proxy = unit.variables["STORAGE_ICEBERG_CATALOG_REST_URI"].removesuffix("/catalog")

    response = httpx.get(f"{proxy}/management/v1/whoami")

    assert (response.status_code, response.json()["error"]["type"]) == (404, "NotForwarded")


def test_unit_has_no_token(unit: RunningTexeraUnit, token: str) -> None:
    texera = unit.pod.find_container("texera")

    assert "/var/run/secrets" not in json.dumps(texera["volumeMounts"])
    assert token not in json.dumps(texera) + str(unit.pod.manifests)


def test_pod_is_the_pod_of_production(unit: RunningTexeraUnit) -> None:
    """These tests run no pod of a trial. Its secrets are references, and the unit's container alone reads them."""
    texera, proxy = (unit.pod.find_container(name) for name in ("texera", "catalog-proxy"))

    assert (texera["image"], proxy["image"]) == (CLUSTER["images"]["texera"], CLUSTER["texera"]["proxy_image"])
    assert unit.variables["STORAGE_JDBC_USERNAME"] == "texera_unit"
    assert unit.variables["STORAGE_JDBC_PASSWORD"] == SECRETS["texera-unit"]["password"]
    assert unit.variables["AUTH_JWT_SECRET"] == SECRETS["texera-unit"]["jwt-secret"]
    assert "texera-unit" not in json.dumps(proxy)


def read_config(unit: RunningTexeraUnit, warehouse: str) -> int:
    """Return the status of a catalog's first request, for the warehouse that an execution chose."""
    uri = unit.variables["STORAGE_ICEBERG_CATALOG_REST_URI"]
    return httpx.get(f"{uri}/v1/config", params={"warehouse": warehouse}).status_code


def test_executions_choose_warehouses_of_a_shared_project(
    jvm: Any,
    declare: DeclareTenant,
    guarded: GuardedCatalog,
    unit: RunningTexeraUnit,
    tmp_path: Path,
) -> None:
    """Texera makes a warehouse for each user in the default project, and names one for each execution (texera#7473).

    A second stack plays Texera: no grant of the first stack reaches its warehouse.
    """
    # All tenants of the server share this project.
    shared, prefix = {"shared": True}, f"{unit.tenant.name}-"
    own_warehouse, user_warehouse = f"{prefix}executions", f"{prefix}user-1-5"
    tenant = declare(3, project=shared, warehouses=[{"name": own_warehouse, "deletion": "purge"}])
    texera = declare(4, project=shared, warehouses=[{"name": user_warehouse, "deletion": "purge"}])
    user = f"kubernetes~{guarded.tokens.find_uid(3)}"
    grants = {"writes": [{"type": privilege, "user": user} for privilege in ("select", "create", "modify")]}

    with run_proxy(tenant, tmp_path, guarded.tokens.issue(3)) as shared_unit:
        assert read_config(shared_unit, own_warehouse) == 200
        assert read_config(shared_unit, user_warehouse) in {403, 404}
        path = f"/management/v1/permissions/warehouse/{texera.catalog_config().warehouses[0].id}/assignments"
        guarded.operator.post(path, json=grants).raise_for_status()

        for name in (own_warehouse, user_warehouse):
            variables = shared_unit.variables | {"STORAGE_ICEBERG_CATALOG_REST_WAREHOUSE_NAME": name}
            catalog = TexeraCatalog(jvm, variables)
            catalog.create_namespace(NAMESPACE)
            identifier = catalog.identify(NAMESPACE, "wid_7_eid_45_runtimestatistics")
            catalog.write(catalog.create_table(identifier), [name])
            assert catalog.read(identifier) == [name]

    # The proxy of a tenant with a project of its own asks for this name in that project.
    unit.present_token(guarded.tokens.issue(1))
    assert read_config(unit, user_warehouse) in {403, 404}
