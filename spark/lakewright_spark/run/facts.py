"""RunFacts: the facts about an execution that its script gets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from lakewright_spark.errors import ConfigMissingError
from lakewright_spark.result_uris import Execution
from lakewright_spark.session.secrets import split_secrets

VARIABLE = "LAKEWRIGHT_RUN"
"""Holds the facts as JSON."""
SECRETS_VARIABLE = "LAKEWRIGHT_RUN_SECRETS"
"""Names the file with the secrets of the run, if there are any."""


class _Secrets(BaseModel):
    """The secrets of one execution, which its facts do not contain until they are read from the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    remote: str | None = None
    conf: dict[str, str] = {}


class ExecutionFacts(BaseModel):
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
    """Address of a Spark Connect server, which may have parameters such as `;token=TOKEN`."""
    conf: dict[str, str] = {}
    """More of Spark's properties."""

    @property
    def addresses(self) -> Execution:
        """The addresses of all tables of the execution."""
        return Execution(self.workflow, self.execution, self.warehouse)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> ExecutionFacts:
        """Read $LAKEWRIGHT_RUN and its file of secrets; ConfigMissingError if they cannot be read."""
        text = environ.get(VARIABLE)
        if not text:
            raise ConfigMissingError(f"${VARIABLE} is not set: start the script with `lakewright-spark run`")
        try:
            facts = cls.model_validate_json(text)
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            field_path = ".".join(str(step) for step in problem["loc"]) or "it"
            raise ConfigMissingError(f"${VARIABLE} does not describe a run: {field_path}: {problem['msg']}") from None
        if not (file := environ.get(SECRETS_VARIABLE)):
            return facts
        try:
            secrets = _Secrets.model_validate_json(Path(file).read_bytes())
        except (OSError, ValidationError):
            raise ConfigMissingError(
                f"{file}: expected the secrets of this run, found no such file or no such JSON object: start the "
                "script with `lakewright-spark run`"
            ) from None
        conf, remote = {**facts.conf, **secrets.conf}, secrets.remote or facts.remote
        return facts.model_copy(update={"conf": conf, "remote": remote})

    def to_environment(self, folder: Path) -> dict[str, str]:
        """Return the variables for the script. Secrets go into a file of mode 0600: every child inherits variables.

        Args:
            folder: Where to write the file. It has to be there until the script has ended.
        """
        public, secret_conf = split_secrets(self.conf)
        public_facts, secrets = self.model_copy(update={"conf": public}), _Secrets(conf=secret_conf)
        if self.remote and ";" in self.remote:  # parameters of the address: a token, or headers of requests
            public_facts = public_facts.model_copy(update={"remote": None})
            secrets = secrets.model_copy(update={"remote": self.remote})
        variables = {VARIABLE: public_facts.model_dump_json()}
        if secrets != _Secrets():
            file = folder / "secrets.json"
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(secrets.model_dump_json().encode())
            variables[SECRETS_VARIABLE] = str(file)
        return variables
