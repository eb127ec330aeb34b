"""A SparkSession from a CatalogConfig: its warehouses as named catalogs, S3 only through what the catalog vends."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from pathlib import Path
from urllib.parse import urlsplit

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from lakewright_spark.catalog.config import REDACTION, CatalogConfig
from lakewright_spark.errors import ConfigMissingError, IdentityError, JobFailedError
from lakewright_spark.session import jars, truststore
from lakewright_spark.session.cluster import cluster_properties, driver_memory, spark_defaults
from lakewright_spark.session.secrets import (
    REDACTION_KEY,
    check_before_start,
    check_executors,
    check_redaction,
    split_secrets,
)

SMALL_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
"""A minute's work is over before the optimising compiler and the parallel collector pay: they double its CPU time.

The code cache is as large as with that compiler: an application of many queries fills the small one and crawls.
"""

ONE_MACHINE: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
"""For one JVM on one machine, whatever its work."""

SMALL_JOB: Mapping[str, str] = {
    **ONE_MACHINE,
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": SMALL_JVM,
    "spark.sql.shuffle.partitions": "4",
}
"""For the jobs of this package: Spark's default of 200 shuffle partitions costs such a job more than its work."""


class Workload(Enum):
    """What a session on one machine is for."""

    SMALL_JOB = "small job"
    """A job of this package."""
    SCRIPT = "script"
    """A user's script: Spark's own compiler, collector and partitions, and half of the machine's memory."""


ALWAYS: Mapping[str, str] = {
    # Instants are compared and stored as UTC, whatever zone the machine is in.
    "spark.sql.session.timeZone": "UTC",
}

_JVM_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
_OF_A_CONNECT_SESSION = ("spark.sql.catalog.", "spark.sql.defaultCatalog", "spark.sql.session.timeZone")


def spark_properties(
    config: CatalogConfig,
    *,
    master: str = "local[*]",
    event_log: Path | None = None,
    workload: Workload = Workload.SMALL_JOB,
) -> dict[str, str]:
    """Every property of a session: the catalogs', the jars', and on one machine those of its workload. No secrets.

    Raises ConfigMissingError for certificate authorities of one's own on a cluster that has no truststore of them.
    """
    local = master.startswith("local")
    properties = {**ALWAYS, **(_of_workload(workload) if local else {}), **config.spark_properties()}
    driver = [jars.DRIVERS[urlsplit(config.uri).scheme]] if config.kind == "jdbc" else []
    properties |= jars.spark_properties([*jars.PACKAGES, *driver])
    if options := _trust(config, local=local):
        properties |= {key: f"{properties.get(key, '')} {options}".strip() for key in _JVM_OPTIONS}
    if event_log:
        # Plain text: who keeps a log wants to search it, for secrets too.
        properties |= {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false"}
        properties["spark.eventLog.dir"] = event_log.resolve().as_uri()
    return properties


def spark_session(
    config: CatalogConfig,
    app: str,
    *,
    master: str | None = None,
    remote: str | None = None,
    deadline: datetime | None = None,
    event_log: Path | None = None,
    properties: Mapping[str, str] | None = None,
    workload: Workload = Workload.SMALL_JOB,
) -> SparkSession:
    """The session of a job: local, on a cluster, under spark-submit, or a client of a Spark Connect server.

    `master` is Spark's own word: `local[*]` (the default), `spark://HOST:PORT`, `k8s://URL`. Under spark-submit, that
    has its say on master, memory and jars. `remote` is a Connect server, `sc://HOST:PORT`, whose extensions and jars
    are its own. `deadline` is when the job ends by itself; see `tokens.check_before_start`. `properties` win over
    those that are made here. Secrets reach the JVM over the connection to it, never on its command line. Raises
    IdentityError, ConfigMissingError, and JobFailedError where there is no Java.
    """
    check_before_start(config, deadline)
    secrets = config.spark_secrets()
    properties = properties or {}
    if remote:
        return _connect(config, app, remote, secrets, properties)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if submitted:
        made = {**ALWAYS, **config.spark_properties()}
    else:
        master = master or "local[*]"
        made = cluster_properties(master, properties)
        made |= spark_properties(config, master=master, event_log=event_log, workload=workload)
        made["spark.master"] = master
        if options := _trust(config, local=master.startswith("local")):
            # Options of one's own for a JVM take nothing away from whom it trusts.
            properties = {k: f"{v} {options}" if k in _JVM_OPTIONS else v for k, v in properties.items()}
        check_executors(master, secrets, {**spark_defaults(), **made, **properties})
    everything = {"spark.app.name": app, **made, **secrets, **properties}
    try:
        _start_jvm(split_secrets(everything)[0])
        if submitted:
            found = dict(SparkConf().getAll())
            check_executors(found.get("spark.master", "local"), secrets, {**found, **everything})
        builder = SparkSession.builder
        for key, value in everything.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise JobFailedError(
            "Spark's JVM did not start (its own words are above): expected Java 17 or newer, named by JAVA_HOME or "
            "found on the PATH"
        ) from error


def _start_jvm(properties: Mapping[str, str]) -> None:
    """Start the JVM with these properties on its command line, unless this process has one."""
    conf = SparkConf(loadDefaults=False)
    for key, value in properties.items():
        conf.set(key, value)
    SparkContext._ensure_initialized(conf=conf)


def _of_workload(workload: Workload) -> Mapping[str, str]:
    if workload is Workload.SMALL_JOB:
        return SMALL_JOB
    memory = driver_memory(spark_defaults())
    return {**ONE_MACHINE, **({"spark.driver.memory": memory} if memory else {})}


def _connect(
    config: CatalogConfig, app: str, remote: str, secrets: Mapping[str, str], properties: Mapping[str, str]
) -> SparkSession:
    host = urlsplit(remote).hostname or ""
    if secrets and "use_ssl=true" not in remote and host not in {"localhost", "127.0.0.1", "::1"}:
        raise IdentityError(f"{remote}: the catalog's credential goes over TLS alone: add ;use_ssl=true to the address")
    # Hides secrets in what the server records of this session's own settings; its event log goes by its own pattern.
    redaction = {**REDACTION, "spark.sql.redaction.options.regex": f"{REDACTION[REDACTION_KEY]}|url"} if secrets else {}
    made = {**ALWAYS, **redaction, **config.spark_properties(), **properties}
    builder = SparkSession.builder.appName(app).remote(remote)
    for key, value in made.items():
        # The rest is the server's: a session can no longer change it.
        if key.startswith((*_OF_A_CONNECT_SESSION, *redaction)) or key in properties:
            builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        check_redaction(remote, secrets, session.conf.get(REDACTION_KEY, None))
        for key, value in secrets.items():
            session.conf.set(key, value)
    except BaseException:
        session.stop()
        raise
    return session


def _trust(config: CatalogConfig, *, local: bool) -> str:
    if config.truststore:
        return truststore.java_options(Path(config.truststore))
    if config.ca_bundle is None:
        return ""
    if not local:
        raise ConfigMissingError(
            "ca_bundle: executors on other machines need the same authorities as a PKCS 12 truststore: put one on each "
            "and set `truststore` to its path"
        )
    return truststore.java_options(truststore.made_from(Path(config.ca_bundle)))
