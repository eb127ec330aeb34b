"""The catalog configuration of jobs, which the last update of a stack exported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.cli.errors import UsageError

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject
    from lakewright_spark.catalog import CatalogConfig

OUTPUT = "catalog_config"


def read_catalog_config(project: PulumiProject, stack: str) -> CatalogConfig:
    """Return the configuration of a stack.

    Raises:
        EngineError: The state cannot be read.
        UsageError: The state has no configuration.
    """
    from lakewright_engine.state.outputs import stack_outputs  # noqa: PLC0415 - only commands that need the state load it
    from lakewright_spark.catalog import CatalogConfig  # noqa: PLC0415
    from pydantic import ValidationError  # noqa: PLC0415

    exported = stack_outputs(project.backend(), project.name, stack).get(OUTPUT)
    if exported is None:
        raise UsageError(f"stack '{stack}' has no output `{OUTPUT}`; run `lakewright up --stack {stack}` first")
    try:
        return CatalogConfig.model_validate(exported)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(str(step) for step in first["loc"])
        message = f"output `{OUTPUT}` of stack '{stack}' is not a catalog configuration: {path}: {first['msg']}"
        raise UsageError(message) from None
