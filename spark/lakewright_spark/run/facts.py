"""What a script is told of the execution that it is; a computing unit learns nothing else of the registry."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from lakewright_spark.errors import ConfigMissingError
from lakewright_spark.results.uris import Execution

VARIABLE = "LAKEWRIGHT_RUN"
"""Holds the facts as JSON."""


class RunFacts(BaseModel):
    """One execution, as its script sees it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = 1
    workflow: NonNegativeInt
    execution: NonNegativeInt
    warehouse: str
    computing_unit: str | None = None
    submitter: str | None = None
    deadline: datetime | None = None
    """When the run is ended by force; UTC."""
    master: str | None = None
    remote: str | None = None
    conf: dict[str, str] = {}
    """More of Spark's properties."""

    @property
    def addresses(self) -> Execution:
        """The addresses of everything that it writes."""
        return Execution(self.workflow, self.execution, self.warehouse)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> RunFacts:
        """Read $LAKEWRIGHT_RUN; ConfigMissingError if it is not there or no such facts."""
        text = environ.get(VARIABLE)
        if not text:
            raise ConfigMissingError(f"${VARIABLE} is not set: start the script with `lakewright-spark run`")
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(step) for step in problem["loc"]) or "it"
            raise ConfigMissingError(f"${VARIABLE} does not tell of a run: {where}: {problem['msg']}") from None
