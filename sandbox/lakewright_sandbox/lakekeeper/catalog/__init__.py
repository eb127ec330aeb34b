"""The Iceberg REST catalog, `/catalog/v1`, and `/lakekeeper/v1` beside it: one file per kind of object."""

from fastapi import APIRouter

from . import commits, config, generic_tables, namespaces, tables, views
from .signing import signing


def routers() -> list[APIRouter]:
    return [module.router for module in (config, signing, namespaces, tables, commits, views, generic_tables)]
