"""Probes: the catalog enforces rights, and units have an identity of their own without rights on the server."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright.client_access.catalog_access import AnonymousAccess, CatalogAccess
from lakewright.client_access.check import Attempt, AttemptResult, expect_allowed, expect_denied
from lakewright.credentials.references import ClientToken
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.server import (
    NoServerAuth,
    ServerClientCredentialsAuth,
    ServerRef,
    ServerTokenAuth,
)
from lakewright.validation.documents import as_list, as_mapping, join_names
from lakewright.verify.session.sessions import RETRY, IdentitySession
from lakewright.verify.session.subjects import JobsToken


def probe_identity(session: IdentitySession) -> Iterator[Attempt]:
    """Check the identity of the units at the catalog."""
    subject = session.subject
    if subject.problem or subject.source is None:
        evidence = subject.problem or "requests are anonymous"
        yield expect_allowed("have an identity of the tenant", "denied", evidence, subject.remedy)
    if subject.source is None:
        return
    yield _compare_with_stack_identity(session)
    yield _try_administration(session)


_BY_WEIGHT = ("denied", "not proven", "allowed")


def _try_administration(session: IdentitySession) -> Attempt:
    findings = [_read_instance_admin(session.server), _read_server_actions(session.server)]
    results: list[AttemptResult] = [result for result, _ in findings]
    evidence = "; ".join(evidence for _, evidence in findings)
    return expect_denied("be an administrator of the server", max(results, key=_BY_WEIGHT.index), evidence)


def _read_instance_admin(server: CatalogAccess) -> tuple[AttemptResult, str]:
    """Return whether the server's configuration names the identity; servers before 0.13 do not report it."""
    whoami = server.request("GET", "/management/v1/whoami")
    if not whoami.is_success:
        # The catalog has never seen the user.
        return whoami.judge_denial("UserNotFound"), f"whoami: {whoami}"
    is_admin = bool(whoami.body.get("is-instance-admin"))
    evidence = f"whoami: {whoami.body.get('id')}, is-instance-admin {str(is_admin).lower()}"
    return "allowed" if is_admin else "denied", evidence


def _read_server_actions(server: CatalogAccess) -> tuple[AttemptResult, str]:
    """Return whether the identity has a right on the server, such as `create_project`."""
    response = server.request("GET", "/management/v1/server/actions")
    if not response.is_success:
        return response.judge_denial(), f"server actions: {response}"
    names = [str(as_mapping(action).get("action")) for action in as_list(response.body.get("allowed-actions"))]
    return "allowed" if names else "denied", f"server actions: {join_names(names)}"


def _compare_with_stack_identity(session: IdentitySession) -> Attempt:
    stack_auth, source = session.tenant.settings.server.auth, session.subject.source
    is_shared, evidence = False, f"ServiceAccount {getattr(source, 'service_account', '')}"
    if isinstance(source, ClientToken):
        is_shared = isinstance(stack_auth, ServerClientCredentialsAuth) and stack_auth.client_id == source.client_id
        evidence = f"client `{source.client_id}`"
    elif isinstance(source, JobsToken):
        is_shared = isinstance(stack_auth, ServerTokenAuth) and stack_auth.token == source.token
        evidence = f"token of `{source.token}`"
    return expect_denied("be the stack's own identity", "allowed" if is_shared else "denied", evidence)


ALLOW_ALL = "allow-all"
_REMEDY = "start Lakekeeper with the authorizer `openfga`, and with an identity provider that authenticates its callers"


def probe_authorization(session: IdentitySession) -> Iterator[Attempt]:
    """Check the server's authorizer, and that requests without a token are refused."""
    info = session.server.request("GET", "/management/v1/info")
    backend = str(info.body.get("authz-backend") or "")
    if not info.is_success or not backend:
        yield expect_allowed("have rights enforced", "not proven", f"info: {info}")
    elif backend == ALLOW_ALL:
        yield expect_allowed(
            "have rights enforced", "denied", "no isolation: the catalog allows every request", _REMEDY
        )
    else:
        yield expect_allowed("have rights enforced", "allowed", f"authz-backend {backend}")
    anonymous = _open_anonymous_access(session)
    try:
        response = anonymous.request("GET", "/catalog/v1/config", params={"warehouse": _format_any_warehouse(session)})
    finally:
        anonymous.close()
    yield expect_denied("use the catalog without a token", response.judge_denial(), f"config: {response}")


def _open_anonymous_access(session: IdentitySession) -> CatalogAccess:
    bundle = session.tenant.settings.server.ca_bundle
    server = ServerRef(endpoint=session.catalog.endpoint, auth=NoServerAuth(), ca_bundle=bundle)
    return AnonymousAccess(Client(server, lambda reference: reference, retry=RETRY))


def _format_any_warehouse(session: IdentitySession) -> str:
    config = session.tenant.config
    return f"{config.project_id}/{config.warehouses[0].name}"
