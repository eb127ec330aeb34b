"""Manifests of the gateway and of routes from outside the cluster."""

from __future__ import annotations

import math
from typing import Any

from lakewright.platform_stack.manifests.gateway_config import PROBE_PATH, GatewayConfig, nginx_config
from lakewright.platform_stack.manifests.objects import (
    Manifest,
    apply_pod_settings,
    cluster_service,
    component_labels,
    compute_short_hash,
    disruption_budget,
    http_probe,
    labels,
    make_object,
    make_restricted_container,
    pod_spec,
    spread,
)
from lakewright.platform_stack.settings.gateway import Route
from lakewright.platform_stack.settings.platform import PlatformSpec, PodResources
from lakewright.platform_stack.settings.server_environment import SERVER_PORT

GATEWAY = "gateway"
_USER = 101
"""User of nginx-unprivileged."""
_CONFIG_FOLDER = "/etc/gateway"
_TLS_FOLDER = "/etc/gateway-tls"
_MIB = 1024 * 1024
_MAX_BODY = 32 * _MIB
"""Bytes: Lakekeeper's limit from 0.14 on."""
_NGINX_MEMORY = 256
"""MiB that nginx may use, beside the files in its scratch volume."""
_MIN_SCRATCH = 256
"""MiB: eight request bodies of the largest default size."""
_DRAIN_SECONDS = 5
"""Seconds that a pod serves on, until its Service sends it no new connections."""
_STOP_SECONDS = 5
"""Seconds that nginx needs to stop after its last request."""


def gateway_name(spec: PlatformSpec) -> str:
    """Return the name of the gateway's Deployment and Service."""
    return f"{spec.name}-gateway"


def gateway_labels(spec: PlatformSpec) -> dict[str, str]:
    """Return the labels of the gateway's pods, for NetworkPolicies of computing units. They never change."""
    return component_labels(spec, GATEWAY)


def gateway_config(spec: PlatformSpec) -> str:
    """Return the configuration of nginx."""
    return nginx_config(
        GatewayConfig(
            upstream=f"{spec.name}.{spec.namespace}.svc:{SERVER_PORT}",
            port=spec.gateway.listen_port,
            max_body_size=_get_max_body_size(spec),
            timeout=spec.gateway.upstream_timeout,
            tls_folder=_TLS_FOLDER if spec.gateway.tls else None,
        )
    )


def _get_max_body_size(spec: PlatformSpec) -> int:
    return spec.server.requests.max_body_size or _MAX_BODY


def _compute_scratch_size(spec: PlatformSpec) -> int:
    """Return the MiB of the scratch volume: at least two request bodies of the largest size."""
    return max(_MIN_SCRATCH, math.ceil(2 * _get_max_body_size(spec) / _MIB))


def gateway_config_map(spec: PlatformSpec) -> Manifest:
    """Return the ConfigMap of the configuration."""
    return make_object(spec, "v1", "ConfigMap", gateway_name(spec), GATEWAY, data={"nginx.conf": gateway_config(spec)})


def gateway_account(spec: PlatformSpec) -> Manifest:
    """Return the gateway's ServiceAccount, which has no rights."""
    return make_object(spec, "v1", "ServiceAccount", gateway_name(spec), GATEWAY, automountServiceAccountToken=False)


def tls_secret_name(spec: PlatformSpec) -> str | None:
    """Return the name of the Secret with the gateway's certificate; None without TLS."""
    tls = spec.gateway.tls
    return None if tls is None else tls.secret or f"{gateway_name(spec)}-tls"


def gateway_deployment(spec: PlatformSpec) -> Manifest:
    """Return the Deployment of the gateway. A new configuration rolls its pods."""
    selector, port = component_labels(spec, GATEWAY), spec.gateway.listen_port
    scheme, scratch = "HTTPS" if spec.gateway.tls else "HTTP", _compute_scratch_size(spec)
    volumes: list[dict[str, Any]] = [
        {"name": "config", "configMap": {"name": gateway_name(spec)}},
        # nginx deletes the name of each file that it opens, and a kubelet measures a volume on disk by names only. A
        # volume in memory is a file system of this size, so requests with large bodies cannot fill the node's disk.
        {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": f"{scratch}Mi"}},
    ]
    mounts: list[dict[str, Any]] = [
        {"name": "config", "mountPath": _CONFIG_FOLDER, "readOnly": True},
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - a volume of the pod
    ]
    if secret := tls_secret_name(spec):
        volumes.append({"name": "tls", "secret": {"secretName": secret, "defaultMode": 0o440}})
        mounts.append({"name": "tls", "mountPath": _TLS_FOLDER, "readOnly": True})
    container = make_restricted_container(
        "nginx",
        spec.gateway.image,
        resources=PodResources(cpu="100m", memory="64Mi", memory_limit=f"{_NGINX_MEMORY + scratch}Mi"),
        command=["nginx", "-c", f"{_CONFIG_FOLDER}/nginx.conf"],
        ports=[{"name": "catalog", "containerPort": port, "protocol": "TCP"}],
        readinessProbe=http_probe(PROBE_PATH, port, scheme=scheme),
        livenessProbe=http_probe(PROBE_PATH, port, scheme=scheme, period=10),
        # Endpoints are removed before connections are closed.
        lifecycle={"preStop": {"sleep": {"seconds": _DRAIN_SECONDS}}},
        volumeMounts=mounts,
    )
    pod = pod_spec(
        service_account=gateway_name(spec),
        containers=[container],
        user=_USER,
        group=_USER,
        terminationGracePeriodSeconds=_DRAIN_SECONDS + spec.gateway.upstream_timeout + _STOP_SECONDS,
        volumes=volumes,
        **spread(selector),
    )
    template = {
        "metadata": {
            "labels": labels(spec, GATEWAY),
            "annotations": {"lakewright/config-hash": compute_short_hash(gateway_config(spec))},
        },
        "spec": pod,
    }
    template = apply_pod_settings(template, spec.gateway.pods)
    return make_object(
        spec,
        "apps/v1",
        "Deployment",
        gateway_name(spec),
        GATEWAY,
        spec={
            "replicas": spec.gateway.replicas,
            "selector": {"matchLabels": selector},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "template": template,
        },
    )


def gateway_service(spec: PlatformSpec) -> Manifest:
    """Return the Service of the gateway: the address of the catalog for computing units."""
    ports = {"catalog": spec.gateway.listen_port}
    return cluster_service(spec, gateway_name(spec), GATEWAY, ports, service=spec.gateway.service)


def gateway_budget(spec: PlatformSpec) -> Manifest:
    """Return the gateway's disruption budget."""
    return disruption_budget(spec, gateway_name(spec), GATEWAY, min_available=spec.gateway.pods.min_available)


def route_manifest(spec: PlatformSpec, route: Route, *, name: str, service: str, port: int) -> Manifest:
    """Return an Ingress or HTTPRoute that forwards a host to a Service."""
    if route.kind == "http-route":
        return _http_route(spec, route, name, {"name": service, "port": port})
    backend = {"service": {"name": service, "port": {"number": port}}}
    # How a path that is removed is matched, such as `/lakehouse(/|$)(.*)`, only the controller knows.
    path_type = "ImplementationSpecific" if route.path else "Prefix"
    path = {"path": route.path or "/", "pathType": path_type, "backend": backend}
    ingress: dict[str, Any] = {"rules": [{"host": route.host, "http": {"paths": [path]}}]}
    if route.class_name:
        ingress["ingressClassName"] = route.class_name
    if route.tls_secret:
        ingress["tls"] = [{"hosts": [route.host], "secretName": route.tls_secret}]
    manifest = make_object(spec, "networking.k8s.io/v1", "Ingress", name, GATEWAY, spec=ingress)
    # Many controllers never write an Ingress's status, for which the provider would wait ten minutes.
    manifest["metadata"]["annotations"] = {"pulumi.com/skipAwait": "true", **route.annotations}
    return manifest


def _http_route(spec: PlatformSpec, route: Route, name: str, backend: dict[str, Any]) -> Manifest:
    parent = route.parent
    assert parent is not None, "a route of kind http-route has a parent"
    reference = {"name": parent.name, "namespace": parent.namespace, "sectionName": parent.section}
    manifest = make_object(
        spec,
        "gateway.networking.k8s.io/v1",
        "HTTPRoute",
        name,
        GATEWAY,
        spec={
            "parentRefs": [{key: value for key, value in reference.items() if value}],
            "hostnames": [route.host],
            "rules": [{**_describe_prefix(route), "backendRefs": [backend]}],
        },
    )
    if route.annotations:
        manifest["metadata"]["annotations"] = dict(route.annotations)
    return manifest


def _describe_prefix(route: Route) -> dict[str, Any]:
    """Return the match of a route's path, and the filter that removes it."""
    if not route.path:
        return {}
    rewrite = {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}
    return {
        "matches": [{"path": {"type": "PathPrefix", "value": route.path}}],
        "filters": [{"type": "URLRewrite", "urlRewrite": rewrite}],
    }
