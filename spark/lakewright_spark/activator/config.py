"""Configuration of the activator: the idle units of one tenant. The stack writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lakewright_spark.errors import ConfigMissingError

Port = Annotated[int, Field(ge=1, le=65535)]


class IdleUnit(BaseModel):
    """A Deployment that is stopped without traffic."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    deployment: str
    listen: Port
    """Port for clients of the unit."""
    host: str
    """Host name of the unit's pod."""
    port: Port
    """Port of the unit's pod."""
    idle_seconds: Annotated[float, Field(gt=0)]
    open_connections_count: bool = False
    """Whether an open connection counts as traffic even while no byte is sent."""


class ActivatorConfig(BaseModel):
    """The idle units of a namespace."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    namespace: str
    address: str = "0.0.0.0"  # noqa: S104 - of the pod
    """Address to listen on."""
    health_port: Port
    """Port that accepts connections of probes."""
    wake_seconds: Annotated[float, Field(gt=0)] = 300
    """Time that a connection waits for its unit to start."""
    units: tuple[IdleUnit, ...]


def load_activator_config(path: Path) -> ActivatorConfig:
    """Read a configuration file. Raises ConfigMissingError."""
    try:
        return ActivatorConfig.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigMissingError(f"{path}: expected a file that can be read; found {type(error).__name__}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field_path = ".".join(str(part) for part in first["loc"]) or "document"
        raise ConfigMissingError(f"{path}: {field_path}: {first['msg']}") from None
