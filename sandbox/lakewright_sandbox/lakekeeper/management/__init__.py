"""The management API, `/management/v1`: one file per kind of object."""

from fastapi import APIRouter

from . import projects, server_info, statistics, warehouses


def routers() -> list[APIRouter]:
    return [module.router for module in (server_info, projects, warehouses, statistics)]
