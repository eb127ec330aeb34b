"""Run a user's script in this process. `lakewright-spark run` starts it, and spark-submit can start it.

    spark-submit [...] script.py --warehouse W --workflow N --execution M SCRIPT [ARGUMENTS]

Started by `run`, the facts are in $LAKEWRIGHT_RUN and there are no options. The exit code is the script's, else that
of this package's error.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from pathlib import Path

from lakewright_spark.catalog.loading import load_config
from lakewright_spark.errors import LakewrightSparkError
from lakewright_spark.run import context
from lakewright_spark.run.facts import VARIABLE, ExecutionFacts
from lakewright_spark.run.permissions import choose_run_warehouse


def main(arguments: list[str]) -> None:
    """Run the script of the arguments. Raises the errors of the script, including SystemExit."""
    options = _parser().parse_args(arguments)
    if VARIABLE not in os.environ:
        _set_variables(options)
    script = Path(options.script)
    sys.argv = [str(script), *options.arguments]
    sys.path.insert(0, str(script.resolve().parent))
    run = context.current()
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        run.close()


def _set_variables(options: argparse.Namespace) -> None:
    """Set the variables that `run` would have set."""
    if options.workflow is None or options.execution is None:
        _parser().error("--workflow and --execution are needed")
    if options.config:
        os.environ["LAKEWRIGHT_CATALOG_FILE"] = options.config
        os.environ.pop("LAKEWRIGHT_CATALOG", None)
    warehouse = choose_run_warehouse(load_config(), options.submitter, options.warehouse)
    facts = ExecutionFacts(
        workflow=options.workflow,
        execution=options.execution,
        warehouse=warehouse.name,
        computing_unit=options.computing_unit,
        submitter=options.submitter,
    )
    os.environ[VARIABLE] = facts.model_dump_json()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Run a PySpark script as one execution.")
    parser.add_argument("--config", help="the catalog configuration")
    parser.add_argument("--warehouse")
    parser.add_argument("--workflow", type=int)
    parser.add_argument("--execution", type=int)
    parser.add_argument("--computing-unit")
    parser.add_argument("--submitter")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except LakewrightSparkError as error:
        sys.stderr.write(f"{Path(sys.argv[0]).name}: {error}\n")
        raise SystemExit(error.exit_code) from None
