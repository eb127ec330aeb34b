"""The Iceberg REST catalog, `/catalog/v1`: one file per kind of object."""

from fastapi import APIRouter

from . import config, namespaces, tables


def routers() -> list[APIRouter]:
    return [module.router for module in (config, namespaces, tables)]
