"""Check that Lakekeeper accepts the service account tokens of pods, for the audience of the environment."""

# The cluster's client carries no types; its values are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from typing import Any, cast

from lakewright.doctor.finding import REQUEST_SECONDS, Finding
from lakewright.environment.environment import Environment, LakekeeperSettings
from lakewright.kubernetes.jobs_identity import AUDIENCE
from lakewright.lakekeeper.api.connection.server import ServerTokenAuth

SUBJECT = "audience of pods' tokens"
_VARIABLE = "LAKEKEEPER__KUBERNETES_AUTHENTICATION_AUDIENCE"
_LIFETIME = 600
"""Seconds; the shortest lifetime of a token in Kubernetes."""


def check_pod_tokens(environment: Environment, namespace: str) -> list[Finding]:
    """Send Lakekeeper a token of a service account of the namespace, as its pods do.

    Returns nothing if pods use no such tokens. Requesting a token changes nothing in the cluster.
    """
    server, cluster = environment.lakekeeper, environment.kubernetes
    if server.jobs_auth.kind != "token-file" or cluster.render_to:
        return []
    import kubernetes  # noqa: PLC0415 - slow to load
    from urllib3.exceptions import HTTPError  # noqa: PLC0415

    from lakewright.lakekeeper.api.connection.errors import LakekeeperError  # noqa: PLC0415

    client, config = cast(Any, kubernetes).client, cast(Any, kubernetes).config
    try:
        api = client.CoreV1Api(config.new_client_from_config(context=cluster.context))
        account = _find_account(api, namespace)
        return [_compare_audiences(server, _Account(api, *account))]
    except LakekeeperError as error:
        return [Finding(SUBJECT, "optional", f"not checked: {error}", "start the server, and run this again")]
    except (config.ConfigException, client.ApiException, HTTPError, OSError) as error:
        reason = str(getattr(error, "reason", None) or error)
        result = f"not checked: the cluster issues no token ({' '.join(reason.split())})"
        return [Finding(SUBJECT, "optional", result, "run this as a user who may create `serviceaccounts/token`")]


class _Account:
    """A service account that tokens can be requested for."""

    def __init__(self, api: Any, namespace: str, name: str) -> None:
        self._api, self._namespace, self._name = api, namespace, name
        self.title = f"system:serviceaccount:{namespace}:{name}"

    def request_token(self, audience: str | None) -> str:
        spec = {"audiences": [audience] if audience else [], "expirationSeconds": _LIFETIME}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        create_token = self._api.create_namespaced_service_account_token
        return str(create_token(self._name, self._namespace, request, _request_timeout=REQUEST_SECONDS).status.token)


def _find_account(api: Any, namespace: str) -> tuple[str, str]:
    """Return namespace and name of a service account of the tenant; without any, the cluster's default account."""
    accounts = api.list_namespaced_service_account(namespace, _request_timeout=REQUEST_SECONDS).items
    return (namespace, str(accounts[0].metadata.name)) if accounts else ("default", "default")


def _compare_audiences(server: LakekeeperSettings, account: _Account) -> Finding:
    audience = server.jobs_token_audience
    if (refused := _find_refusal(server, account.request_token(audience))) is None:
        return Finding(SUBJECT, "ok", f"{_describe_token(audience)} is accepted ({account.title})")
    result = f"{_describe_token(audience)} is refused: {refused}"
    other = AUDIENCE if audience is None else None
    if _find_refusal(server, account.request_token(other)) is None:
        setting = f"set `lakekeeper.jobs_token_audience: {other or 'null'}` in the environment"
        alternative = f", or {_VARIABLE}={audience} on the server" if audience else ""
        return Finding(SUBJECT, "missing", f"{result}; {_describe_token(other)} is accepted", setting + alternative)
    fix = (
        f"set {_VARIABLE} on the server and `lakekeeper.jobs_token_audience` in the environment to the same name, and "
        "LAKEKEEPER__ENABLE_KUBERNETES_AUTHENTICATION=true on the server, which must know this cluster"
    )
    return Finding(SUBJECT, "missing", result, fix)


def _find_refusal(server: LakekeeperSettings, token: str) -> str | None:
    """Return why the server refuses a token, or None if it accepts it."""
    from lakewright.http.retry import RetryPolicy  # noqa: PLC0415
    from lakewright.lakekeeper.api.connection.client import Client  # noqa: PLC0415 - slow to load
    from lakewright.lakekeeper.api.connection.errors import ForbiddenError, NotAuthenticatedError  # noqa: PLC0415

    auth = ServerTokenAuth(kind="token", token="env:TOKEN_OF_A_POD")  # noqa: S106 - a reference, resolved below
    reference = server.reference.model_copy(update={"auth": auth})
    client = Client(reference, lambda _reference: token, retry=RetryPolicy(attempts=1))
    try:
        client.server()
    except NotAuthenticatedError as refused:
        return str(refused)
    except ForbiddenError:
        return None  # the token was accepted; its owner has no rights
    finally:
        client.close()
    return None


def _describe_token(audience: str | None) -> str:
    return f"a token for the audience `{audience}`" if audience else "a token for the cluster's own audience"
