"""Find Java classes of a running session, and load this package's classes into it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from lakewright_spark.session import jars

MAINTENANCE_CATALOG = "lakewright.spark.MaintenanceCatalog"
"""Iceberg's REST catalog, whose tables refresh their metadata without new credentials of the storage."""
CATALOG_CLASS = ".catalog-impl"
"""End of the property that names the class of a catalog."""
_loading = threading.Lock()


def find_class(spark: SparkSession, name: str) -> Any:
    """Return a Java class, given its full name.

    Attribute access, such as `jvm.java.util.List`, makes py4j search all jars once for each part of the name, and once
    more for each imported package.
    """
    return getattr(cast(Any, spark)._jvm, name)


def load_own_jar(spark: SparkSession) -> Any:
    """Load the jar on the driver and the executors for this thread, and return its Java class loader.

    It is not on the class path of every session, so that other sessions need no compiled class.
    """
    session = cast(Any, spark)
    with _loading:
        loader = session._jsparkSession.sharedState().jarClassLoader()
        jar = jars.own()
        url = find_class(spark, "java.io.File")(str(jar)).toURI().toURL()
        if url.toString() not in {entry.toString() for entry in loader.getURLs()}:
            loader.addURL(url)
            session.sparkContext._jsc.addJar(str(jar))
    return use_loaded_jars(spark)


def call_own_class(spark: SparkSession, name: str, method: str, *values: Any) -> Any:
    """Call a static method of a Java class of this package, after the session, and return its result.

    Raises:
        Py4JJavaError: The method failed.
    """
    session = cast(Any, spark)
    methods = load_own_jar(spark).loadClass(name).getMethods()
    java = next(java for java in methods if java.getName() == method)
    arguments = session.sparkContext._gateway.new_array(find_class(spark, "java.lang.Object"), 1 + len(values))
    for number, value in enumerate([session._jsparkSession, *values]):
        arguments[number] = value
    try:
        return java.invoke(None, arguments)
    except Py4JJavaError as error:
        # Java wraps the error of a method that is called by its name, but not an error of the call itself.
        raise Py4JJavaError(error.errmsg, error.java_exception.getCause() or error.java_exception) from None


def use_loaded_jars(spark: SparkSession) -> Any:
    """Let this thread find the classes of jars that the session has loaded, and return their Java class loader.

    Each thread of Python has its own thread in Java. The first use of a catalog loads its class.
    """
    session = cast(Any, spark)
    loader = session._jsparkSession.sharedState().jarClassLoader()
    find_class(spark, "java.lang.Thread").currentThread().setContextClassLoader(loader)
    return loader


def needs_own_jar(properties: Mapping[str, str]) -> bool:
    """Return whether a catalog is a class of this package."""
    return any(key.endswith(CATALOG_CLASS) and value == MAINTENANCE_CATALOG for key, value in properties.items())


def replace_catalog_types(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties without the types of catalogs that name a class: Iceberg accepts one of both.

    >>> replace_catalog_types({"spark.sql.catalog.a.type": "rest", "spark.sql.catalog.a.catalog-impl": "org.Own"})
    {'spark.sql.catalog.a.catalog-impl': 'org.Own'}
    """
    types = {key.removesuffix(CATALOG_CLASS) + ".type" for key in properties if key.endswith(CATALOG_CLASS)}
    return {key: value for key, value in properties.items() if key not in types}
