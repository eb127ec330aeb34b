"""Spark properties of a session by its master: one machine, a standalone cluster, Kubernetes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.errors import ConfigMissingError
from lakewright_spark.session.builder import SMALL_JOB, Workload, spark_properties
from lakewright_spark.session.cluster import cluster_properties, driver_memory, spark_defaults

IMAGE = {"spark.kubernetes.container.image": "registry.example/spark:4.1.4"}
CONFIG = CatalogConfig(
    tenant="acme",
    uri="https://c.example/catalog",
    project_id="acme",
    warehouses=[CatalogWarehouse(name="executions", id="1")],
)


@pytest.fixture
def pod(tmp_path: Path) -> Path:
    (tmp_path / "namespace").write_text("tenant-acme\n")
    return tmp_path


def test_standalone_cluster_needs_only_its_address(pod: Path) -> None:
    for master in ("local", "local[2]", "local[*]", "spark://one:7077,two:7077"):
        assert cluster_properties(master, {}, {"HOSTNAME": "driver"}, pod) == {}


def test_kubernetes_executors_end_with_the_driver_pod(pod: Path) -> None:
    assert cluster_properties("k8s://https://api.example:6443", IMAGE, {"HOSTNAME": "notebook-0"}, pod) == {
        "spark.kubernetes.namespace": "tenant-acme",
        "spark.kubernetes.driver.pod.name": "notebook-0",
    }
    elsewhere = {**IMAGE, "spark.kubernetes.namespace": "jobs"}
    properties = cluster_properties("k8s://https://api.example", elsewhere, {"HOSTNAME": "notebook-0"}, pod)
    assert "spark.kubernetes.driver.pod.name" not in properties, "a pod cannot own others in another namespace"


def test_pod_of_an_indexed_job_has_another_host_name(pod: Path) -> None:
    environ = {"HOSTNAME": "maintenance-29000000-1", "POD_NAME": "maintenance-29000000-1-x7k2p"}

    properties = cluster_properties("k8s://https://api.example", IMAGE, environ, pod)

    assert properties["spark.kubernetes.driver.pod.name"] == "maintenance-29000000-1-x7k2p"


def test_spark_defaults_name_image_and_namespace(pod: Path, tmp_path: Path) -> None:
    defaults = "spark.kubernetes.container.image registry.example/spark\nspark.kubernetes.namespace jobs\n"
    (tmp_path / "spark-defaults.conf").write_text(defaults)
    environ = {"HOSTNAME": "notebook-0", "SPARK_CONF_DIR": str(tmp_path)}

    assert cluster_properties("k8s://https://api.example", {}, environ, pod) == {}


def test_kubernetes_context_outside_of_a_pod(tmp_path: Path) -> None:
    assert cluster_properties("k8s://https://api.example", IMAGE, {"HOSTNAME": "laptop"}, tmp_path / "none") == {}


def test_invalid_masters_are_refused_at_once(pod: Path) -> None:
    with pytest.raises(ConfigMissingError, match=r"give spark\.kubernetes\.container\.image=IMAGE"):
        cluster_properties("k8s://https://api.example", {}, {}, pod)
    for wrong in ("yarn", "spark://one", "k8s://", "http://one:7077", "local[]", ""):
        with pytest.raises(ConfigMissingError, match=r"expected local\[N\], spark://HOST:PORT or k8s://URL"):
            cluster_properties(wrong, {}, {}, pod)


@pytest.mark.parametrize("master", ["spark://one:7077", "k8s://https://api.example"])
def test_remote_executors_get_no_local_settings(master: str) -> None:
    properties, local = spark_properties(CONFIG, master=master), spark_properties(CONFIG)
    only_local = {key for key in SMALL_JOB if key not in properties}
    assert only_local == set(SMALL_JOB)
    sent_jars = {"spark.jars": properties["spark.driver.extraClassPath"].replace(":", ",")}
    assert properties == {key: value for key, value in local.items() if key not in only_local} | sent_jars
    assert properties["spark.sql.catalog.executions.warehouse"] == "acme/executions"


def test_class_path_of_spark_defaults_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_path = spark_properties(CONFIG)["spark.driver.extraClassPath"]
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.extraClassPath /opt/site.jar\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))

    assert spark_properties(CONFIG)["spark.driver.extraClassPath"] == f"{own_path}:/opt/site.jar"


@pytest.mark.parametrize(
    ("workload", "end"), [(Workload.SMALL_JOB, " -XX:+ExitOnOutOfMemoryError"), (Workload.SCRIPT, "")]
)
def test_jvm_options_of_spark_defaults_are_kept(
    workload: Workload, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They replace options of the workload, as options of the caller do: a JVM with two collectors does not start."""
    defaults = "spark.driver.extraJavaOptions -XX:+UseG1GC\nspark.executor.extraJavaOptions -Dsite=a\n"
    (tmp_path / "spark-defaults.conf").write_text(defaults)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    trusting = CONFIG.model_copy(update={"truststore": "/etc/trust.p12"})

    plain = spark_properties(CONFIG, workload=workload)
    properties = spark_properties(trusting, master="spark://one:7077", workload=workload)

    assert plain["spark.driver.extraJavaOptions"] == f"-XX:+UseG1GC{end}"
    assert plain["spark.executor.extraJavaOptions"] == "-Dsite=a"
    assert properties["spark.driver.extraJavaOptions"].startswith("-XX:+UseG1GC -Djavax.net.ssl.trustStore=")
    assert properties["spark.executor.extraJavaOptions"].startswith("-Dsite=a -Djavax.net.ssl.trustStore=")


def test_script_gets_no_small_job_settings() -> None:
    script = spark_properties(CONFIG, workload=Workload.SCRIPT)
    assert "spark.driver.extraJavaOptions" not in script
    assert "spark.sql.shuffle.partitions" not in script
    assert script["spark.driver.memory"] != SMALL_JOB["spark.driver.memory"]
    assert script["spark.driver.host"] == "127.0.0.1"


def test_maintenance_uses_the_optimizing_compiler() -> None:
    assert "TieredStopAtLevel=1" in spark_properties(CONFIG)["spark.driver.extraJavaOptions"]
    maintenance = spark_properties(CONFIG, workload=Workload.MAINTENANCE)
    assert maintenance["spark.driver.extraJavaOptions"] == "-XX:+ExitOnOutOfMemoryError"
    assert maintenance["spark.sql.shuffle.partitions"] == SMALL_JOB["spark.sql.shuffle.partitions"]


def test_script_gets_half_of_the_memory_by_default(tmp_path: Path) -> None:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    memory = driver_memory({}, {})
    assert memory is not None
    assert 1024 <= int(memory.removesuffix("m")) <= max(machine // 2, 1024)
    (tmp_path / "spark-defaults.conf").write_text("# mine\nspark.driver.memory   3g\nspark.a=b c\n\n!spark.c d\n")
    defaults = spark_defaults({"SPARK_CONF_DIR": str(tmp_path)})
    assert defaults == {"spark.driver.memory": "3g", "spark.a": "b c"}
    assert driver_memory(defaults, {}) is None
    assert driver_memory({}, {"SPARK_DRIVER_MEMORY": "3g"}) is None
    assert spark_defaults({"SPARK_HOME": str(tmp_path)}) == {}


@pytest.mark.parametrize(
    "line",
    ["spark.a b = c", "spark.a=b = c", "spark.a = b = c", "spark.a:b = c", "spark.a : b = c", "  spark.a\t b = c "],
)
def test_spaces_around_separators_in_spark_defaults(line: str, tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(f"{line}\n")
    assert spark_defaults({"SPARK_CONF_DIR": str(tmp_path)}) == {"spark.a": "b = c"}


def test_custom_authorities_on_a_cluster() -> None:
    bundle = CONFIG.model_copy(update={"ca_bundle": "/etc/authority.pem"})
    with pytest.raises(ConfigMissingError, match="set `truststore` to its path"):
        spark_properties(bundle, master="spark://one:7077")
    properties = spark_properties(bundle.model_copy(update={"truststore": "/etc/trust.p12"}), master="spark://one:7077")
    for key in ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"):
        assert "-Djavax.net.ssl.trustStore=/etc/trust.p12" in properties[key]
