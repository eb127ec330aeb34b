"""HTTP clients of clusters by their kubeconfig, which the official Kubernetes client reads."""

from __future__ import annotations

import os
import ssl
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

import httpx
import yaml

from lakewright_sandbox.providers.protocol.errors import SandboxProviderError
from lakewright_sandbox.providers.protocol.properties import Properties

_SECONDS = 30


class _KubeconfigAuth(httpx.Auth):
    """Send the credential of a kubeconfig's user, renewed where it comes from a command."""

    def __init__(self, configuration: Any) -> None:
        self._configuration = configuration

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        for setting in self._configuration.auth_settings().values():
            request.headers[setting["key"]] = setting["value"]
        yield request


def open_http(config: Properties) -> httpx.Client:
    """Return a client of the cluster of a provider's kubeconfig, given as text or file, by default in $KUBECONFIG.

    Raises:
        SandboxProviderError: The kubeconfig cannot be used.
    """
    # The import takes half a second, and most providers of a sandbox render manifests.
    from kubernetes.client import Configuration  # noqa: PLC0415
    from kubernetes.config import ConfigException, kube_config  # noqa: PLC0415

    configuration: Any = Configuration()
    load = cast(Any, kube_config).load_kube_config_from_dict
    try:
        load(_document(config), context=config.get("context") or None, client_configuration=configuration)
        tls = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        if not configuration.verify_ssl:
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        if configuration.cert_file:
            tls.load_cert_chain(configuration.cert_file, configuration.key_file)
    except (OSError, ValueError, KeyError, TypeError, ConfigException) as error:
        raise SandboxProviderError(
            "the kubernetes provider's `kubeconfig`, or $KUBECONFIG, must contain the cluster of its context; it "
            f"cannot be used ({type(error).__name__})"
        ) from error
    return httpx.Client(
        base_url=configuration.host,
        verify=tls,
        auth=_KubeconfigAuth(configuration),
        timeout=_SECONDS,
        trust_env=False,
    )


def _document(config: Properties) -> dict[str, Any]:
    setting = str(config.get("kubeconfig") or os.environ.get("KUBECONFIG") or "")
    try:
        text = setting if "\n" in setting or setting.startswith("{") else Path(setting).expanduser().read_text("utf-8")
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError("not YAML") from error
    if not isinstance(document, dict):
        raise TypeError("not a mapping")
    return cast(dict[str, Any], document)
