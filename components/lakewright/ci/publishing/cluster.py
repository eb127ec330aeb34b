"""Events and the memory of the last check in a cluster, with the rights of the pod's ServiceAccount."""

# The cluster's client carries no types.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from lakewright.ci.errors import PublishError
from lakewright.ci.publishing.check import DriftCheck
from lakewright.ci.publishing.events import (
    Occurrence,
    extend_series,
    list_drifted,
    list_occurrences,
    make_event,
)
from lakewright.names.object_names import namespace_name
from lakewright.validation.documents import as_mapping

DRIFTED_KEY = "drifted.json"
"""Key of the ConfigMap with the stacks that had drift at the last check."""
_TIMEOUT = 15
_NOT_FOUND, _CONFLICT = 404, 409


@dataclass(frozen=True)
class EventSource:
    """The CronJob that checks: Events about the whole fleet, and about tenants without a namespace, regard it."""

    namespace: str
    cron_job: str
    config_map: str = ""
    """ConfigMap with the stacks that had drift, which the first check creates; empty to keep none."""
    instance: str = ""
    """Name of the pod."""


class DriftEvents:
    """Events of checks in a cluster."""

    def __init__(self, source: EventSource, api: Any | None = None) -> None:
        """Connect with the pod's ServiceAccount, else with the kubeconfig. Raises PublishError."""
        import kubernetes  # noqa: PLC0415 - slow to load

        self._kubernetes, self._source = cast(Any, kubernetes), source
        if api is None:
            try:
                self._kubernetes.config.load_config()
            except self._kubernetes.config.ConfigException as error:
                raise PublishError(f"Events: expected a pod's ServiceAccount or a kubeconfig ({error})") from None
        client = self._kubernetes.client
        self._events, self._core = client.EventsV1Api(api), client.CoreV1Api(api)
        self._batch = client.BatchV1Api(api)

    def publish(self, check: DriftCheck) -> int:
        """Write the Events of a check, and the memory for the next check. Return their number.

        Raises:
            PublishError: An Event or the memory could not be written; all others were.
        """
        drifted_before = self._read_drifted()
        occurrences = list_occurrences(check, drifted_before)
        look_up_reference = cache(self._look_up_reference)
        failures: list[PublishError] = []
        for occurrence in occurrences:
            try:
                self._write(occurrence, look_up_reference(occurrence.tenant), check.ended)
            except PublishError as error:
                failures.append(error)
        try:
            self._remember(list_drifted(check, drifted_before))
        except PublishError as error:
            failures.append(error)
        if failures:
            raise failures[0]
        return len(occurrences)

    def _write(self, occurrence: Occurrence, regarding: dict[str, str], time: float) -> None:
        """Create an Event, or extend the series of the Event with this content."""
        namespace = regarding["namespace"]
        event = make_event(occurrence, regarding, self._source.instance, namespace, time)
        title = f"Event in namespace {namespace}"
        create = self._events.create_namespaced_event
        if self._call(title, create, namespace, event, _accepts=_CONFLICT) is not None:
            return
        name = occurrence.event_name
        existing = self._call(title, self._events.read_namespaced_event, name, namespace, _accepts=_NOT_FOUND)
        if existing is None:  # it expired in between
            self._call(title, create, namespace, event, _accepts=_CONFLICT)
            return
        change = extend_series(self._events.api_client.sanitize_for_serialization(existing), time)
        self._call(title, self._events.patch_namespaced_event, name, namespace, change, _accepts=_NOT_FOUND)

    def _look_up_reference(self, tenant: str) -> dict[str, str]:
        """Return the reference to the tenant's namespace; without a namespace, to the CronJob."""
        if tenant:
            name = namespace_name(tenant)
            live_object = self._call(f"namespace {name}", self._core.read_namespace, name, _accepts=_NOT_FOUND)
            if live_object is not None:
                # With its own name as namespace: Events are in the namespace of the object that they are about.
                return {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "name": name,
                    "namespace": name,
                    "uid": live_object.metadata.uid,
                }
        source = self._source
        reference = {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "name": source.cron_job,
            "namespace": source.namespace,
        }
        title = f"CronJob {source.namespace}/{source.cron_job}"
        live_object = self._call(
            title, self._batch.read_namespaced_cron_job, source.cron_job, source.namespace, _accepts=_NOT_FOUND
        )
        return reference if live_object is None else {**reference, "uid": live_object.metadata.uid}

    def _read_drifted(self) -> list[str]:
        config_map = self._read_memory() if self._source.config_map else None
        try:
            names: Any = json.loads(str(as_mapping(config_map.data).get(DRIFTED_KEY) or "[]")) if config_map else []
        except ValueError:
            return []
        return [str(name) for name in cast(list[Any], names)] if isinstance(names, list) else []

    def _remember(self, drifted: Iterable[str]) -> None:
        name, namespace = self._source.config_map, self._source.namespace
        if not name:
            return
        title, data = self._format_memory_title(), {"data": {DRIFTED_KEY: json.dumps(list(drifted))}}
        if self._read_memory() is not None:
            self._call(title, self._core.patch_namespaced_config_map, name, namespace, data)
            return
        labels = {"app.kubernetes.io/managed-by": "lakewright"}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, **data}
        self._call(title, self._core.create_namespaced_config_map, namespace, body)

    def _read_memory(self) -> Any:
        """Return the ConfigMap that remembers; None before the first check."""
        read, source = self._core.read_namespaced_config_map, self._source
        return self._call(self._format_memory_title(), read, source.config_map, source.namespace, _accepts=_NOT_FOUND)

    def _format_memory_title(self) -> str:
        return f"ConfigMap {self._source.namespace}/{self._source.config_map}"

    def _call(self, title: str, call: Callable[..., Any], *arguments: Any, _accepts: int = 0) -> Any:
        """Make a call. Return None for the status that is accepted. Raises PublishError."""
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        try:
            return call(*arguments, _request_timeout=_TIMEOUT)
        except self._kubernetes.client.ApiException as error:
            status = int(getattr(error, "status", 0) or 0)
            if _accepts and status == _accepts:
                return None
            raise PublishError(f"{title}: the cluster responded with {status} {_parse_reason(error)}") from None
        except (HTTPError, OSError) as error:
            raise PublishError(f"{title}: the cluster did not respond ({type(error).__name__})") from None


def _parse_reason(error: Any) -> str:
    """Return the message of an error of the API, on one line."""
    try:
        message = json.loads(error.body)["message"]
    except (TypeError, ValueError, KeyError):
        message = error.reason
    return " ".join(str(message).split())[:300]
