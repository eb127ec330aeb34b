"""A job in its own process, which a test kills. Arguments: configuration, table, policies, job, now."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.maintenance import job_runner
from lakewright_spark.policies.model import TablePolicies
from lakewright_spark.session.builder import spark_session
from lakewright_spark.table_identifier import TableIdentifier

config = CatalogConfig.load(Path(sys.argv[1]))
table = TableIdentifier.parse(config.warehouses[0].name, sys.argv[2])
policy = TablePolicies.model_validate_json(sys.argv[3])
spark = spark_session(config, "dying")
# As in `conftest.py`: the time is an argument.
spark._jsparkSession.sessionState().conf().setConfString("spark.testing", "true")
print("begins", flush=True)
job_runner.run_job(sys.argv[4], spark, table, policy, dry_run=False, now=datetime.fromisoformat(sys.argv[5]))  # pyright: ignore
print("ended", flush=True)
