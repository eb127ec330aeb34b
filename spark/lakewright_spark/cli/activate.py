"""Command `activate`: start idle computing units on use, and stop them without traffic."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Annotated

import typer

from lakewright_spark.activator.config import IdleUnit, load_activator_config
from lakewright_spark.activator.scaling import DeploymentScale, connect_to_cluster


def activate(
    *, config: Annotated[Path, typer.Option(metavar="FILE", help="Configuration that the stack makes.")]
) -> None:
    """Run the activator of a tenant in its own pod: a TCP proxy that scales Deployments from zero and to zero.

    Example: lakewright-spark activate --config activator.json
    """
    from lakewright_spark.activator import server  # noqa: PLC0415 - only this command needs it

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    settings = load_activator_config(config)
    apps = connect_to_cluster()

    def build_scale(unit: IdleUnit) -> DeploymentScale:
        return DeploymentScale(apps, settings.namespace, unit.deployment)

    asyncio.run(server.run(settings, build_scale))
