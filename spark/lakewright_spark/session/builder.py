"""Build a SparkSession from a CatalogConfig, with its warehouses as named catalogs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from lakewright_spark.catalog.auth import JAVA_MANAGER
from lakewright_spark.catalog.config import REDACTION, CatalogConfig
from lakewright_spark.errors import ConfigMissingError, IdentityError, JobFailedError
from lakewright_spark.session import jars, truststore
from lakewright_spark.session.cluster import cluster_properties, driver_memory, spark_defaults
from lakewright_spark.session.own_classes import load_own_jar, needs_own_jar, replace_catalog_types
from lakewright_spark.session.secrets import (
    EVENT_LOG_KEY,
    REDACTION_KEY,
    check_before_start,
    check_event_log,
    check_executors,
    check_redaction,
    split_secrets,
)

_EXIT_WITHOUT_MEMORY = "-XX:+ExitOnOutOfMemoryError"
"""JVM option: after a thread ran out of memory, the JVM could wait forever. It ends instead."""
SMALL_JVM = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m {_EXIT_WITHOUT_MEMORY}"
"""JVM options for short commands: the optimizing compiler and the parallel collector would double their CPU time.

The code cache is as large as with that compiler, since applications of many queries fill a smaller cache.
"""

ONE_MACHINE: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
"""Properties for one JVM on one machine."""

SMALL_JOB: Mapping[str, str] = {
    **ONE_MACHINE,
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": SMALL_JVM,
    "spark.sql.shuffle.partitions": "4",
}
"""Properties for jobs of this package, for which Spark's default of 200 shuffle partitions is too many."""


MAINTENANCE: Mapping[str, str] = {**SMALL_JOB, "spark.driver.extraJavaOptions": _EXIT_WITHOUT_MEMORY}
"""Properties for hours of work: without the optimizing compiler, it took 1.7 times the processor time."""


class Workload(Enum):
    """Workload of a session on one machine."""

    SMALL_JOB = "small job"
    """A short command of this package."""
    MAINTENANCE = "maintenance"
    """Jobs of this package on many tables."""
    SCRIPT = "script"
    """A user's script: Spark's own compiler, collector and partitions, and half of the machine's memory."""


ALWAYS: Mapping[str, str] = {
    # Instants are compared and stored as UTC, independent of the machine's time zone.
    "spark.sql.session.timeZone": "UTC",
}

DRIVER_JVM_OPTIONS = "spark.driver.extraJavaOptions"
_JVM_OPTIONS = (DRIVER_JVM_OPTIONS, "spark.executor.extraJavaOptions")
_OF_A_CONNECT_SESSION = ("spark.sql.catalog.", "spark.sql.defaultCatalog", "spark.sql.session.timeZone")


def spark_properties(
    config: CatalogConfig,
    *,
    master: str = "local[*]",
    event_log: Path | None = None,
    workload: Workload = Workload.SMALL_JOB,
    properties: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the properties of a session for catalogs, jars and workload, without secrets.

    Args:
        config: The catalog configuration.
        master: Master URL of Spark.
        event_log: Existing folder for the event log.
        workload: Workload of a session on one machine.
        properties: Properties of the caller, whose class paths may name jars of a storage service.

    Raises:
        ConfigMissingError: Custom certificate authorities on a cluster without a truststore.
    """
    local = master.startswith("local")
    built = {**ALWAYS, **(_build_workload_properties(workload) if local else {}), **config.spark_properties()}
    defaults = spark_defaults()
    packages = jars.list_packages(config, defaults, properties or {})
    built |= join_class_paths(jars.driver_properties(packages), defaults)
    if not local:
        built |= jars.spark_properties(packages)  # for the executors
    if options := trust_options(config, local=local):
        built |= {key: f"{built.get(key, '')} {options}".strip() for key in _JVM_OPTIONS}
    # Both could name a garbage collector: as options of the caller, these replace the options of the workload.
    built |= _complete_jvm_options(defaults, config, workload, local=local)
    if event_log:
        # Plain text, so that logs can be searched.
        built |= {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false"}
        built["spark.eventLog.dir"] = event_log.resolve().as_uri()
    return built


def spark_session(
    config: CatalogConfig,
    app: str,
    *,
    master: str | None = None,
    remote: str | None = None,
    deadline: datetime | None = None,
    event_log: str | Path | None = None,
    properties: Mapping[str, str] | None = None,
    workload: Workload = Workload.SMALL_JOB,
) -> SparkSession:
    """Return a session: local, on a cluster, under spark-submit, or as a client of a Spark Connect server.

    Secrets reach the JVM over the connection to it, never on its command line.

    Args:
        config: The catalog configuration.
        app: Name of the application.
        master: Master URL of Spark: `local[*]` (default), `spark://HOST:PORT`, `k8s://URL`. spark-submit sets its own.
        remote: Address of a Spark Connect server, `sc://HOST:PORT`, which has its own extensions and jars.
        deadline: When the job ends at the latest (UTC); see `secrets.check_before_start`.
        event_log: Existing folder for the event log.
        properties: Spark properties, which override the properties of this function.
        workload: Workload of a session on one machine.

    Raises:
        IdentityError: A credential is missing or expires too early.
        ConfigMissingError: The master or the truststore is missing or invalid.
        JobFailedError: The JVM did not start.
    """
    properties = properties or {}
    if remote:
        return _connect(config, app, remote, deadline, properties)
    check_before_start(config, deadline)
    secrets = config.spark_secrets()
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if submitted:
        base_properties = {**ALWAYS, **config.spark_properties()}
    else:
        master = master or "local[*]"
        base_properties = cluster_properties(master, properties)
        base_properties |= spark_properties(
            config,
            master=master,
            event_log=Path(event_log) if event_log else None,
            workload=workload,
            properties=properties,
        )
        base_properties["spark.master"] = master
        options = _complete_jvm_options(properties, config, workload, local=master.startswith("local"))
        properties = {**properties, **options, **join_class_paths(base_properties, properties)}
        check_executors(master, secrets, {**spark_defaults(), **base_properties, **properties})
    everything = replace_catalog_types({"spark.app.name": app, **base_properties, **secrets, **properties})
    try:
        _start_jvm(split_secrets(everything)[0])
        if submitted:
            submitted_conf = dict(SparkConf().getAll())
            check_executors(submitted_conf.get("spark.master", "local"), secrets, {**submitted_conf, **everything})
        builder = SparkSession.builder
        for key, value in everything.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise JobFailedError(
            "Spark's JVM did not start (see its output above): expected Java 17 or newer in JAVA_HOME or on the PATH"
        ) from error
    if needs_own_jar(everything):
        load_own_jar(session)
    return session


JVM_STARTS = 2
"""Attempts to start a JVM."""
_END_SECONDS = 30
"""Time for the process of a JVM that no longer responds to end."""


def _responds(gateway: Any) -> bool:
    """Return whether the JVM responds to a call."""
    try:
        gateway.jvm.java.lang.System.nanoTime()
    except (Py4JError, OSError):
        return False
    return True


def forget_dead_session() -> None:
    """Forget this process's JVM if it has ended or is ending, so that the next session starts another.

    A JVM that ran out of memory closes its port before its process ends.
    """
    context: Any = SparkContext
    gateway = context._gateway
    process = getattr(gateway, "proc", None)
    if process is None or (process.poll() is None and _responds(gateway)):
        return
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
    with suppress(Exception):  # connections to the dead JVM
        gateway.shutdown()
    context._gateway = context._jvm = context._active_spark_context = None
    session: Any = SparkSession
    session._instantiatedSession = session._activeSession = None


def _complete_jvm_options(
    user_properties: Mapping[str, str], config: CatalogConfig, workload: Workload, *, local: bool
) -> dict[str, str]:
    """Return the JVM options of a user with the truststore, and with the end of a driver without memory."""
    trust = trust_options(config, local=local)
    fixed_options: dict[str, list[str]] = {key: [trust] if trust else [] for key in _JVM_OPTIONS}
    if local and workload is not Workload.SCRIPT:
        fixed_options[DRIVER_JVM_OPTIONS] = [_EXIT_WITHOUT_MEMORY, *fixed_options[DRIVER_JVM_OPTIONS]]
    return {
        key: " ".join([user_properties[key], *options])
        for key, options in fixed_options.items()
        if key in user_properties
    }


def join_class_paths(*sources: Mapping[str, str]) -> dict[str, str]:
    """Return the driver's class path with the files of all sources. Spark would use the last source only."""
    class_paths = (source[jars.DRIVER_CLASS_PATH] for source in sources if source.get(jars.DRIVER_CLASS_PATH))
    return {jars.DRIVER_CLASS_PATH: os.pathsep.join(class_paths)}


def _start_jvm(properties: Mapping[str, str]) -> None:
    """Start the JVM with these properties on its command line, unless this process has one."""
    conf = SparkConf(loadDefaults=False)
    for key, value in properties.items():
        conf.set(key, value)
    for attempt in range(JVM_STARTS):
        try:
            cast(Any, SparkContext)._ensure_initialized(conf=conf)
        except PySparkRuntimeError as error:
            # In a process that has used gRPC, gRPC's threads may end the child before it becomes Java.
            if error.getCondition() != "JAVA_GATEWAY_EXITED" or attempt == JVM_STARTS - 1:
                raise
        else:
            return


def _build_workload_properties(workload: Workload) -> Mapping[str, str]:
    if workload is not Workload.SCRIPT:
        return SMALL_JOB if workload is Workload.SMALL_JOB else MAINTENANCE
    memory = driver_memory(spark_defaults())
    return {**ONE_MACHINE, **({"spark.driver.memory": memory} if memory else {})}


def _connect(
    config: CatalogConfig, app: str, remote: str, deadline: datetime | None, properties: Mapping[str, str]
) -> SparkSession:
    _, secret_properties = split_secrets(properties)
    catalog_secrets, host = config.spark_secrets(), urlsplit(remote).hostname or ""
    address = remote.partition(";")[0].rstrip("/")  # its parameters may have a token
    has_secrets = bool(catalog_secrets or secret_properties)
    if has_secrets and "use_ssl=true" not in remote and host not in {"localhost", "127.0.0.1", "::1"}:
        raise IdentityError(f"{address}: the catalog's credential requires TLS: add ;use_ssl=true to the address")
    builder = SparkSession.builder.appName(app).remote(remote)
    session = builder.getOrCreate()
    try:
        if _authenticates_itself(session, config):
            settings, catalog_secrets = {**ALWAYS, **properties}, {}
        else:
            check_before_start(config, deadline)
            settings = _session_settings(config, properties, has_secrets=has_secrets)
        secrets = catalog_secrets | secret_properties
        # Before the session has its settings, these are the server's.
        check_event_log(address, secrets, session.conf.get(EVENT_LOG_KEY, None))
        check_redaction(address, secrets, session.conf.get(REDACTION_KEY, None))
        for key, value in settings.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        for key, value in catalog_secrets.items():
            session.conf.set(key, value)
    except BaseException:
        session.stop()
        raise
    return session


def _session_settings(config: CatalogConfig, properties: Mapping[str, str], *, has_secrets: bool) -> dict[str, str]:
    """Return the settings of a session on a server, which cannot change the server's other settings."""
    # Hides secrets in the server's record of this session's settings.
    patterns = {**REDACTION, "spark.sql.redaction.options.regex": f"{REDACTION[REDACTION_KEY]}|url"}
    redaction = patterns if has_secrets else {}
    settings = {**ALWAYS, **redaction, **config.spark_properties(), **properties}
    changeable = (*_OF_A_CONNECT_SESSION, *redaction)
    return {key: value for key, value in settings.items() if key.startswith(changeable) or key in properties}


def _authenticates_itself(session: SparkSession, config: CatalogConfig) -> bool:
    """Return whether the server has all catalogs and reads its own credential, as in a computing unit."""
    names = (f"spark.sql.catalog.{warehouse.name}.rest.auth.type" for warehouse in config.warehouses)
    return all(session.conf.get(name, None) == JAVA_MANAGER for name in names)


def trust_options(config: CatalogConfig, *, local: bool) -> str:
    """Return the JVM options for custom certificate authorities; empty without any.

    Raises:
        ConfigMissingError: Executors on other machines, and no truststore.
    """
    if config.truststore:
        return truststore.java_options(Path(config.truststore))
    if config.ca_bundle is None:
        return ""
    if not local:
        raise ConfigMissingError(
            "ca_bundle: executors on other machines need the same authorities as a PKCS 12 truststore: put one on each "
            "and set `truststore` to its path"
        )
    return truststore.java_options(truststore.create_truststore(Path(config.ca_bundle)))
