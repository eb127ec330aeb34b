"""Providers for comparison, in a module: the SDK can pickle only about 300 by value before it recurses too deep."""

from __future__ import annotations

from typing import Any

import httpx
from pulumi.dynamic import CreateResult, ReadResult, ResourceProvider


class Nothing(ResourceProvider):
    """A provider without calls, which leaves the cost of Pulumi's SDK and the engine."""

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult("nothing", props)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        return ReadResult(id_, props)


class NaiveProject(ResourceProvider):
    """A naive provider: a client for each call, and a call for each read."""

    def create(self, props: dict[str, Any]) -> CreateResult:
        body = {"project-id": props["project_id"], "project-name": props["name"]}
        return CreateResult(_call("POST", props, "/management/v1/project", body)["project-id"], props)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        found = _call("GET", props, "/management/v1/project")
        return ReadResult(id_, {**props, "name": found["project-name"]})

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        _call("DELETE", _props, "/management/v1/project")


class NaiveRole(ResourceProvider):
    """The same for roles."""

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult(_call("POST", props, "/management/v1/role", {"name": props["name"]})["id"], props)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        return ReadResult(id_, {**props, "name": _call("GET", props, f"/management/v1/role/{id_}")["name"]})

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        _call("DELETE", _props, f"/management/v1/role/{_id}")


def _call(method: str, props: dict[str, Any], path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    with httpx.Client(base_url=props["endpoint"], headers={"x-project-id": props["project_id"]}) as http:
        response = http.request(method, path, json=body).raise_for_status()
        return response.json() if response.content else {}
