"""Evaluate the checks of rights: by the catalog's authorizer, or by the policies of an IAM role."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakewright_spark.aws_partition import bucket_arn

from lakewright.client_access.role_documents import RoleReader
from lakewright.client_access.role_policies import (
    PolicyRequest,
    find_allowing_statement,
    find_unconditional_statement,
)
from lakewright.data_checks.result import NotEvaluatedError, Verdict
from lakewright.data_checks.session import CheckSession
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.management import permissions
from lakewright.names.table_name import QualifiedName, parse_parts
from lakewright.spec.data_check import Access, AccessCheck

MAX_NAMED_TABLES = 3
"""Tables that a message names."""
_ACTIONS: Mapping[Access, str] = {"read": "read_data", "write": "write_data"}
_S3_ACTIONS: Mapping[Access, tuple[str, ...]] = {
    "read": ("s3:GetObject",),
    "write": ("s3:PutObject", "s3:DeleteObject"),
}
_CANARY = "lakewright-check"
"""Name of an object that does not exist."""


@dataclass(frozen=True)
class AccessDecision:
    """Whether an operation is allowed."""

    operation: str
    is_allowed: bool
    is_conditional: bool = False
    """Whether it is allowed under conditions that are not evaluated here."""


def format_title(check: AccessCheck) -> str:
    """Return what is checked."""
    return f"{check.principal} on {check.on}"


def evaluate(check: AccessCheck, session: CheckSession) -> Iterator[Verdict]:
    """Yield whether the principal can do what it should be able to do, and nothing that it should not."""
    decide = _decide_by_policies if check.is_iam else _decide_by_catalog
    asserted = dict[Access, bool](dict.fromkeys(check.can, True))
    asserted.update(dict.fromkeys(check.cannot, False))
    for access, should_be_allowed in asserted.items():
        assertion = f"{'can' if should_be_allowed else 'cannot'} {access}"
        expected = f"{access} is {'allowed' if should_be_allowed else 'denied'} on {check.on}"
        try:
            yield _compare_decisions(
                assertion, expected, decide(check, access, session), should_be_allowed=should_be_allowed
            )
        except NotEvaluatedError as error:
            yield Verdict(assertion, expected, str(error), "not evaluated")


def _compare_decisions(
    assertion: str, expected: str, decisions: Sequence[AccessDecision], *, should_be_allowed: bool
) -> Verdict:
    contradictions = [decision.operation for decision in decisions if decision.is_allowed is not should_be_allowed]
    noun = "allowed" if should_be_allowed else "denied"
    if not contradictions:
        conditional = [decision.operation for decision in decisions if decision.is_conditional]
        if conditional:
            raise NotEvaluatedError(
                f"allowed under conditions: {_join_names(conditional)} (of {len(decisions)}); only conditions on"
                " s3:prefix, aws:CurrentTime and aws:SecureTransport are evaluated"
            )
        return Verdict.from_evaluation(
            assertion, expected, f"{noun}: {_join_names([d.operation for d in decisions])}", holds=True
        )
    other = "denied" if should_be_allowed else "allowed"
    return Verdict.from_evaluation(
        assertion, expected, f"{other}: {_join_names(contradictions)} (of {len(decisions)})", holds=False
    )


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED_TABLES} more" if len(names) > MAX_NAMED_TABLES else ""
    return ", ".join(names[:MAX_NAMED_TABLES]) + more


def _decide_by_catalog(check: AccessCheck, access: Access, session: CheckSession) -> list[AccessDecision]:
    """Return the server's decisions for each table. Writing on namespaces includes the creation of tables in them."""
    server = session.client.server()
    if server.authz_backend in {"", "allow-all"}:
        raise NotEvaluatedError("the server enforces no rights (authorizer allow-all), so this can be proven nowhere")
    requests_by_operation = _list_operations(check, access, session)
    if not requests_by_operation:
        raise NotEvaluatedError(f"{check.on} has no table to check with; create one, or name a table")
    allowed_requests = permissions.are_allowed(
        session.client,
        session.target.spec.project_id,
        _find_identity(check, session),
        [*requests_by_operation.values()],
    )
    return [
        AccessDecision(operation, is_allowed)
        for operation, is_allowed in zip(requests_by_operation, allowed_requests, strict=True)
    ]


def _find_identity(check: AccessCheck, session: CheckSession) -> dict[str, str]:
    kind, _, name = check.principal.partition(":")
    if kind == "user":
        return {"user": name}
    role_id = session.role_ids.get(session.target.spec.qualify_role(name))
    if role_id is None:
        raise NotEvaluatedError(f"role {name} is not on the server; run `lakewright up`")
    return {"role": role_id}


def _list_operations(check: AccessCheck, access: Access, session: CheckSession) -> dict[str, dict[str, Any]]:
    on = check.on
    warehouse_id = session.require_warehouse(on.warehouse)
    target_tables = _list_target_tables(check, session)
    if on.table and not target_tables:
        raise NotEvaluatedError(f"table {on} does not exist, or this identity cannot see it")
    requests_by_operation: dict[str, dict[str, Any]] = {
        f"{access} {QualifiedName(on.warehouse, table.namespace, table.name).in_warehouse}": {
            "table": {
                "action": {"action": _ACTIONS[access]},
                "warehouse-id": warehouse_id,
                "table-id": table.tabular_id,
            }
        }
        for table in target_tables
    }
    if access == "write" and not on.table:
        declared_paths = session.find_declared_warehouse(on.warehouse).namespace_paths
        inside = [
            path for path in declared_paths if on.namespace in (None, path) or path.startswith(f"{on.namespace}.")
        ]
        for path in inside:
            requests_by_operation[f"create tables in {path}"] = {
                "namespace": {
                    "action": {"action": "create_table"},
                    "warehouse-id": warehouse_id,
                    "namespace": path.split("."),
                }
            }
    return requests_by_operation


def _list_target_tables(check: AccessCheck, session: CheckSession) -> Sequence[Tabular]:
    on = check.on
    if on.table:
        *namespace, name = parse_parts(on.table)
        return [
            table
            for table in session.list_tables(on.warehouse, tuple(namespace))
            if (*table.namespace, table.name) == (*namespace, name)
        ]
    return session.list_tables(on.warehouse, tuple(on.namespace.split(".")) if on.namespace else None)


def _decide_by_policies(check: AccessCheck, access: Access, session: CheckSession) -> list[AccessDecision]:
    """Return the decisions of an IAM role's identity policies for the files of the target."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs]

    bucket, prefix = session.find_bucket(check.on.warehouse)
    folders = _list_folders(check, prefix, session)
    reader = RoleReader(session.target.aws)
    try:
        documents = reader.read(check.principal)
    except (BotoCoreError, ClientError) as error:
        raise NotEvaluatedError(f"the policies of {check.principal} cannot be read: {error}") from None
    if documents.arn != check.principal:
        raise NotEvaluatedError(
            f"the policies of {check.principal} cannot be read: the role of this name in the stack's AWS account is"
            f" {documents.arn}; name that role, or run the check with an identity of the other account"
        )
    arn = bucket_arn(bucket.bucket, bucket.region)
    requests = [
        PolicyRequest(action, "/".join(filter(None, (arn, folder, _CANARY))), time=session.now)
        for folder in folders
        for action in _S3_ACTIONS[access]
    ]
    return [_decide_request(documents.policies, request) for request in requests]


def _decide_request(policies: Sequence[Mapping[str, Any]], request: PolicyRequest) -> AccessDecision:
    is_allowed = find_allowing_statement(policies, request) is not None
    is_conditional = is_allowed and find_unconditional_statement(policies, request) is None
    folder = request.resource.partition("/")[2].removesuffix(_CANARY)
    return AccessDecision(f"{request.action} {folder}*", is_allowed, is_conditional)


def _list_folders(check: AccessCheck, prefix: str, session: CheckSession) -> list[str]:
    """Return the key prefixes of a target's files: a policy may have the folders of a table without its location."""
    locations = session.load_locations(check.on.warehouse, _list_target_tables(check, session))
    is_part = bool(check.on.table or check.on.namespace)
    if is_part and not locations:
        raise NotEvaluatedError(f"{check.on} has no table to check with; create one, or check the warehouse")
    folders = [f"{location.key}{folder}" for location in locations for folder in ("", "/data", "/metadata")]
    return folders if is_part else [prefix, *folders]
