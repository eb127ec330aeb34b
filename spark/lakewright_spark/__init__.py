"""Lakewright on Spark: the catalog configuration, sessions, execution results and table maintenance.

A script that `lakewright-spark run` starts calls `current()`, whose `spark` is the session and whose `write` writes
results. Other programs load a configuration that a stack wrote, and open a `spark_session`, a `ResultWriter` or a
`ResultReader` with it:

>>> from lakewright_spark import CatalogConfig, Execution, Port
>>> config = CatalogConfig(
...     tenant="acme", kind="rest", uri="https://catalog.example", warehouses=[{"name": "raw"}]
... )
>>> config.spark_properties()["spark.sql.defaultCatalog"]
'raw'
>>> print(Execution(workflow=7, execution=42, warehouse="raw").result(Port("Clean-1")))
vfs:///wh/raw/wid/7/eid/42/globalportid/...

The names of `__all__` are loaded when they are used, so that importing this package takes no time and needs neither
PySpark nor PyIceberg.
"""

TYPE_CHECKING = False
"""True for type checkers, as in `typing`, whose import would take longer than that of this package."""

if TYPE_CHECKING:
    from lakewright_spark.catalog import CatalogConfig
    from lakewright_spark.catalog.loading import load_config
    from lakewright_spark.errors import LakewrightSparkError
    from lakewright_spark.result_uris import Execution, Port, ResultUri
    from lakewright_spark.results.reader import ResultReader
    from lakewright_spark.results.writer import ResultWriter
    from lakewright_spark.run.context import current
    from lakewright_spark.session.builder import spark_session

__all__ = [
    "CatalogConfig",
    "Execution",
    "LakewrightSparkError",
    "Port",
    "ResultReader",
    "ResultUri",
    "ResultWriter",
    "current",
    "load_config",
    "spark_session",
]

_MODULES = {
    "CatalogConfig": "catalog",
    "Execution": "result_uris",
    "LakewrightSparkError": "errors",
    "Port": "result_uris",
    "ResultReader": "results.reader",
    "ResultUri": "result_uris",
    "ResultWriter": "results.writer",
    "current": "run.context",
    "load_config": "catalog.loading",
    "spark_session": "session.builder",
}

if not TYPE_CHECKING:  # type checkers refuse unknown names only of modules without `__getattr__`

    def __getattr__(name):
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415 - as few imports as possible

        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

    def __dir__():
        return sorted({*globals(), *__all__})
