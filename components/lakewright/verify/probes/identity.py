"""Probes: the catalog enforces rights, and units have an identity of their own without rights on the server."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright.client_access.catalog_access import CatalogAccess
from lakewright.client_access.check import Attempt, expect_allowed, expect_denied
from lakewright.credentials.references import ClientToken
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.server import (
    NoServerAuth,
    ServerClientCredentialsAuth,
    ServerRef,
    ServerTokenAuth,
)
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
    whoami = session.server.request("GET", "/management/v1/whoami")
    if whoami.is_success:
        is_admin = bool(whoami.body.get("is-instance-admin"))
        evidence = f"whoami: {whoami.body.get('id')}, is-instance-admin {str(is_admin).lower()}"
        yield expect_denied("be an administrator of the server", "allowed" if is_admin else "denied", evidence)
    else:
        # A user that has no rights yet, or that the catalog has never seen, is not an administrator.
        yield expect_denied(
            "be an administrator of the server", whoami.judge_denial("UserNotFound"), f"whoami: {whoami}"
        )


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
    return CatalogAccess(Client(server, lambda reference: reference, retry=RETRY))


def _format_any_warehouse(session: IdentitySession) -> str:
    config = session.tenant.config
    return f"{config.project_id}/{config.warehouses[0].name}"
