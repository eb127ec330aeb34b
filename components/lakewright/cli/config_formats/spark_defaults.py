"""Format `spark`: a spark-defaults.conf."""

from __future__ import annotations

from lakewright.cli.config_formats.config_format import ConfigFormat
from lakewright.kubernetes.runtimes import spark_defaults

FORMAT = ConfigFormat(spark_defaults)
