"""The Kubernetes API over HTTP, as far as a Pulumi plugin, `kubectl scale` and `lakewright doctor` use it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any, cast

import yaml
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lakewright_sandbox.cluster.fields import Json
from lakewright_sandbox.cluster.kinds import KINDS, ObjectKind
from lakewright_sandbox.cluster.objects import Objects
from lakewright_sandbox.cluster.patches import json_patched, merge_patch
from lakewright_sandbox.cluster.status import ApiStatusError, manager_required
from lakewright_sandbox.tokens.app import DISCOVERY, KEYS, request_issuer
from lakewright_sandbox.tokens.keys import SigningKey
from lakewright_sandbox.tokens.service_accounts import ServiceAccount

PLATFORM = "lakewright-sandbox"
"""The platform in `/version`, which no real cluster has."""
_VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.2", "platform": PLATFORM}
_PATCHES: dict[str, Callable[[Json, Any], Json]] = {
    "application/json-patch+json": json_patched,
    "application/merge-patch+json": merge_patch,
    "application/strategic-merge-patch+json": merge_patch,
}


class SandboxCluster:
    """A cluster: its objects, and the key that signs the tokens of its service accounts."""

    def __init__(self) -> None:
        """Start with the default namespaces and a new key."""
        self.objects, self.key = Objects(), SigningKey()

    def app(self) -> Starlette:
        """Return the API as an ASGI application."""
        every = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        routes = [Route("/version", self._version), Route(DISCOVERY, self._discovery), Route(KEYS, self._keys)]
        for prefix in ("/api/{version}", "/apis/{group}/{version}"):
            routes.append(Route(prefix, self._list_kinds))
            for collection in ("/namespaces/{namespace}/{plural}", "/{plural}"):
                for suffix in ("/{name}/{subresource}", "/{name}", ""):
                    routes.append(Route(f"{prefix}{collection}{suffix}", self._object, methods=every))
        return Starlette(routes=_most_specific_first(routes), exception_handlers={ApiStatusError: _respond_to_refusal})

    async def _version(self, _request: Request) -> Response:
        return JSONResponse(_VERSION)

    async def _discovery(self, request: Request) -> Response:
        issuer = request_issuer(request)
        return JSONResponse({"issuer": issuer, "jwks_uri": f"{issuer}{KEYS}"})

    async def _keys(self, _request: Request) -> Response:
        return JSONResponse(self.key.public_set())

    async def _list_kinds(self, request: Request) -> Response:
        """Return the kinds of an API version."""
        path = request.path_params
        version = f"{path['group']}/{path['version']}" if "group" in path else path["version"]
        kinds = [kind for kind in KINDS.values() if kind.api_version == version]
        if not kinds:
            raise ApiStatusError(404, "the server could not find the requested resource")
        resources = [
            {"name": kind.plural, "singularName": "", "namespaced": kind.namespaced, "kind": kind.kind}
            for kind in kinds
        ]
        return JSONResponse({"kind": "APIResourceList", "groupVersion": version, "resources": resources})

    async def _object(self, request: Request) -> Response:
        body = yaml.safe_load(await request.body()) if request.method not in ("GET", "DELETE") else None
        return await run_in_threadpool(_Call(self, request, body).respond)


class _Call:
    """One request about an object or a collection."""

    def __init__(self, cluster: SandboxCluster, request: Request, body: Any) -> None:
        self._objects, self._key, self._request, self._body = cluster.objects, cluster.key, request, body
        path = request.path_params
        version = f"{path['group']}/{path['version']}" if "group" in path else path["version"]
        if (version, path["plural"]) not in KINDS:
            raise ApiStatusError(404, "the server could not find the requested resource")
        self._kind: ObjectKind = KINDS[version, path["plural"]]
        self._namespace, self._name = path.get("namespace", ""), path.get("name", "")
        self._subresource = path.get("subresource", "")
        self._dry_run = request.query_params.get("dryRun") == "All"
        self._made = request.method == "POST"
        agent = request.headers.get("user-agent", "unknown").partition("/")[0]
        self._manager = request.query_params.get("fieldManager") or agent

    def respond(self) -> Response:
        method = self._request.method
        if self._subresource:
            handlers = {("token", "POST"): self._create_token, ("scale", method): self._scale}
            if self._kind.kind == "Pod":
                handlers = {("status", "PATCH"): self._change_status}
            handler = handlers.get((self._subresource, method), _unknown_subresource)
        elif method == "GET" and not self._name:
            handler = self._list
        else:
            handler = getattr(self, f"_{method.lower()}")
        body = handler()
        return JSONResponse(body, 201 if self._made else 200)

    def _get(self) -> Json:
        return self._objects.get(self._kind, self._namespace, self._name)

    def _list(self) -> Json:
        query = self._request.query_params
        items = [
            item
            for item in self._objects.items(self._kind, self._namespace)
            if _has_labels(item, query.get("labelSelector", ""))
        ]
        limit, start = int(query.get("limit") or len(items)), int(query.get("continue") or 0)
        more = {"continue": str(start + limit)} if start + limit < len(items) else {}
        head = {"apiVersion": self._kind.api_version, "kind": f"{self._kind.kind}List", "metadata": more}
        return {**head, "items": items[start : start + limit]}

    def _post(self) -> Json:
        return self._objects.create(self._kind, self._namespace, self._body, self._manager, dry_run=self._dry_run)

    def _put(self) -> Json:
        return self._change(lambda _live: self._body)

    def _delete(self) -> Json:
        return self._objects.delete(self._kind, self._namespace, self._name)

    def _change(self, build: Callable[[Json], Json], kind_of_change: str = "") -> Json:
        target = (self._namespace, self._name)
        return self._objects.change(
            self._kind, target, build, self._manager, subresource=kind_of_change, dry_run=self._dry_run
        )

    def _patch(self) -> Json:
        media = self._request.headers.get("content-type", "").partition(";")[0]
        if media == "application/apply-patch+yaml":
            if not self._request.query_params.get("fieldManager"):
                raise manager_required()
            self._made = not self._objects.has(self._kind, self._namespace, self._name)
            force = self._request.query_params.get("force") == "true"
            return self._objects.apply(
                self._kind, self._namespace, self._body, self._manager, force=force, dry_run=self._dry_run
            )
        if media not in _PATCHES:
            raise ApiStatusError(415, f"the body of the request was in an unknown format: {media}")
        return self._change(lambda live: _PATCHES[media](live, self._body))

    def _scale(self) -> Json:
        if self._request.method == "GET":
            live = self._objects.get(self._kind, self._namespace, self._name)
        else:
            replicas = int(self._body["spec"]["replicas"])
            live = self._change(lambda live: merge_patch(live, {"spec": {"replicas": replicas}}), "scale")
        metadata = {key: live["metadata"][key] for key in ("name", "namespace", "resourceVersion", "uid")}
        spec = {"replicas": live["spec"].get("replicas", 1)}
        return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": spec}

    def _change_status(self) -> Json:
        """Change the status of a pod and nothing else, as a kubelet does."""
        return self._change(lambda live: merge_patch(live, {"status": self._body["status"]}), "status")

    def _create_token(self) -> Json:
        live = self._objects.get(self._kind, self._namespace, self._name)
        issuer, spec = request_issuer(self._request), cast(Json, self._body.get("spec") or {})
        account = ServiceAccount(self._namespace, self._name, live["metadata"]["uid"])
        # An API server without configured audiences uses its issuer as audience.
        claims = account.claims(issuer, issuer) | ({"aud": spec["audiences"]} if spec.get("audiences") else {})
        status = {"token": self._key.sign(claims), "expirationTimestamp": "2099-01-01T00:00:00Z"}
        return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec, "status": status}


def _has_labels(item: Json, selector: str) -> bool:
    """Return whether an object has the labels of a selector, `KEY=VALUE,...`."""
    labels = cast(Json, item["metadata"].get("labels") or {})
    required_labels = (part.partition("=") for part in selector.split(",") if part)
    return all(labels.get(key) == value for key, _, value in required_labels)


def _unknown_subresource() -> Json:
    raise ApiStatusError(404, "the server could not find the requested resource")


def kubeconfig(endpoint: str, context: str = "sandbox") -> str:
    """Return a kubeconfig for the cluster at an endpoint."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": context, "cluster": {"server": endpoint}}],
        "users": [{"name": context, "user": {"token": uuid.uuid4().hex}}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
    }
    return json.dumps(document)


def _most_specific_first(routes: list[Route]) -> list[Route]:
    """Order routes so that a namespace's collections come before the namespaces themselves."""
    return sorted(routes, key=lambda route: (-("{namespace}" in route.path), -route.path.count("/")))


async def _respond_to_refusal(_request: Request, error: Exception) -> Response:
    return cast(ApiStatusError, error).response()
