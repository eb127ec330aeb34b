"""The connection to a sandbox's AWS: endpoints, credentials, and the check that it is a sandbox."""

from __future__ import annotations

import importlib
import json
import os
import threading
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from lakewright_sandbox.providers.protocol.errors import NotASandboxError, SandboxProviderError
from lakewright_sandbox.providers.protocol.properties import UNKNOWN, Properties
from lakewright_sandbox.runtime.processes import choose_trust
from lakewright_sandbox.typed import boto

RESPONSE_TIMEOUT_VARIABLE = "LAKEWRIGHT_ANSWER_WITHIN"
"""Environment variable with the timeout of a response of S3, IAM or STS in seconds."""

_SERVICE_MODELS = "lakewright_sandbox.providers.aws.service_models"
"""A module that is slow to load: a warm process imports it ahead."""

_SERVICES = ("s3", "iam", "sts")
_BESIDE = {"kms": "s3"}  # one sandbox serves them all; few programs set this endpoint
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_INSTALL = (
    "the sandbox's aws provider only talks to a running sandbox; to reach a real account, install the real provider: "
    "`pulumi plugin install resource aws` (pulumi-resource-aws)"
)


@dataclass
class AwsConnection:
    """boto3 clients of one sandbox, created at first use."""

    region: str
    endpoints: dict[str, str]
    session: Any
    """A boto3 session."""
    _clients: dict[tuple[str, str, bool], Any] = field(default_factory=dict[tuple[str, str, bool], Any])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def client(self, service: str, region: str | None = None, *, once: bool = False) -> Any:
        """Return the client of a service.

        Args:
            service: The service.
            region: Its region, by default the provider's.
            once: Never retry. Creates need that: a retry would find the object of the first attempt.
        """
        at = (service, region or self.region, once)
        with self._lock:
            if at not in self._clients:
                self._clients[at] = boto.create_client(
                    self.session,
                    service,
                    region_name=at[1],
                    endpoint_url=self.endpoints[service],
                    config=_client_config(attempts=1 if once else 3),
                )
            return self._clients[at]

    def get_endpoint(self, service: str) -> str:
        """Return the endpoint of a service."""
        return self.endpoints[service]


def _client_config(attempts: int) -> boto.Config:
    return boto.Config(
        connect_timeout=5,
        read_timeout=float(os.environ.get(RESPONSE_TIMEOUT_VARIABLE) or 30),
        max_pool_connections=32,
        retries={"mode": "standard", "total_max_attempts": attempts},
        s3={"addressing_style": "path"},
    )


def connect(config: Properties) -> AwsConnection | None:
    """Return a connection for the provider's configuration and the AWS_* environment, None while a part is unknown.

    Raises:
        NotASandboxError: The endpoint is missing, not on loopback, or not a sandbox.
    """
    if UNKNOWN in config.values():
        return None
    region = config.get("region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise SandboxProviderError(
            "the aws provider has no region; set `aws:region`, `region` of the provider, or AWS_REGION"
        )
    endpoints = _endpoints(config)
    for endpoint in sorted(set(endpoints.values())):
        _prove_sandbox(endpoint)
    importlib.import_module(_SERVICE_MODELS)
    return AwsConnection(region, endpoints, _session(config))


def parse_structured(config: Properties, key: str) -> Any:
    """Return a structured configuration value, which the SDK sends as JSON text; None if it is not set."""
    value = config.get(key)
    if not isinstance(value, str) or value == UNKNOWN:
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise SandboxProviderError(f"the aws provider's `{key}` is not JSON: {error}") from error


def _endpoints(config: Properties) -> dict[str, str]:
    configured_endpoints: dict[str, str] = {}
    entries: list[dict[str, str]] = parse_structured(config, "endpoints") or []
    for entry in entries:
        configured_endpoints |= {service: url for service, url in entry.items() if url}
    endpoints: dict[str, str] = {}
    for service in _SERVICES:
        variable = f"AWS_ENDPOINT_URL_{service.upper()}"
        endpoint = configured_endpoints.get(service) or os.environ.get(variable) or os.environ.get("AWS_ENDPOINT_URL")
        if not endpoint:
            raise NotASandboxError(
                f"the aws provider has no endpoint for {service}; {_INSTALL}; to use a sandbox, set `endpoints` to the "
                "endpoints that `lakewright sandbox status` prints"
            )
        endpoints[service] = endpoint
    return endpoints | {
        service: configured_endpoints.get(service) or endpoints[like] for service, like in _BESIDE.items()
    }


def _prove_sandbox(endpoint: str) -> None:
    if urlsplit(endpoint).hostname not in _LOOPBACK:
        raise NotASandboxError(f"the aws endpoint {endpoint} is not on this machine; {_INSTALL}")
    try:
        # Ignore proxies of the environment: they are not for loopback.
        response = httpx.get(
            f"{endpoint.rstrip('/')}/moto-api/",
            timeout=10,
            trust_env=False,
            follow_redirects=True,
            verify=choose_trust(endpoint),
        )
    except httpx.HTTPError as error:
        raise NotASandboxError(
            f"no response from the aws endpoint {endpoint} ({error}); start the sandbox with `lakewright sandbox up`"
        ) from error
    if response.status_code != 200:
        raise NotASandboxError(
            f"the aws endpoint {endpoint} does not respond as a sandbox does (GET /moto-api/ gave "
            f"{response.status_code}); {_INSTALL}"
        )


def _session(config: Properties) -> Any:
    files: list[str] = parse_structured(config, "sharedCredentialsFiles") or []
    profile = config.get("profile") or None
    access_key, secret_key = config.get("accessKey"), config.get("secretKey")
    if bool(access_key) != bool(secret_key):
        raise SandboxProviderError("the aws provider needs `accessKey` and `secretKey` together, or neither")
    if access_key:
        return boto.boto3_session(access_key, secret_key, config.get("token") or None)
    if files:
        return _session_from_file(files, profile or os.environ.get("AWS_PROFILE") or "default")
    try:
        return boto.boto3_session(profile=profile)
    except boto.ProfileNotFound as error:
        raise SandboxProviderError(
            f"the aws provider's profile {profile!r} is in no credentials file: {error}"
        ) from error


def _session_from_file(files: list[str], profile: str) -> Any:
    """Return a session with a profile's keys from explicit files, which botocore supports in the environment only."""
    for file in reversed(files):
        try:
            profiles = boto.read_credentials_file(file)
        except boto.ConfigNotFound:
            continue
        except boto.ConfigParseError as error:
            raise SandboxProviderError(f"the credentials file {file} is not a credentials file: {error}") from error
        section = profiles.get(profile)
        if section and section.get("aws_access_key_id") and section.get("aws_secret_access_key"):
            return boto.boto3_session(
                section["aws_access_key_id"], section["aws_secret_access_key"], section.get("aws_session_token")
            )
    raise SandboxProviderError(f"no profile {profile!r} with keys in the credentials files {', '.join(files)}")
