"""The Iceberg REST catalog, `/catalog/v1`: one file per kind of object."""

from fastapi import APIRouter

from . import commits, config, namespaces, signing, tables, views


def routers() -> list[APIRouter]:
    return [module.router for module in (config, signing, namespaces, tables, commits, views)]
