"""Evaluate the checks of rights: by the catalog's authorizer, or by the policies of an IAM role."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakewright_spark.aws_partition import bucket_arn

from lakewright.data_checks.errors import NotEvaluatedError
from lakewright.data_checks.result import Verdict
from lakewright.data_checks.session import CheckSession
from lakewright.lakekeeper.api.management import action_checks
from lakewright.names.table_name import QualifiedName, parse_parts
from lakewright.spec.monitoring.access_check import Access, AccessCheck
from lakewright.verify.roles.documents import RoleReader
from lakewright.verify.roles.reach import PolicyRequest, allowing_statement

NAMED = 3
"""Tables that a message names."""
_ACTIONS: Mapping[Access, str] = {"read": "read_data", "write": "write_data"}
_S3_ACTIONS: Mapping[Access, tuple[str, ...]] = {
    "read": ("s3:GetObject",),
    "write": ("s3:PutObject", "s3:DeleteObject"),
}
_CANARY = "lakewright-check"
"""Name of an object that does not exist."""


@dataclass(frozen=True)
class Decision:
    """Whether one thing is allowed."""

    what: str
    is_allowed: bool


def title(check: AccessCheck) -> str:
    """Return what is checked."""
    return f"{check.principal} on {check.on}"


def evaluate(check: AccessCheck, session: CheckSession) -> Iterator[Verdict]:
    """Yield whether the principal can do what it should be able to do, and nothing that it should not."""
    decide = _by_policies if check.is_iam else _by_catalog
    asserted = dict[Access, bool](dict.fromkeys(check.can, True))
    asserted.update(dict.fromkeys(check.cannot, False))
    for access, wanted in asserted.items():
        assertion = f"{'can' if wanted else 'cannot'} {access}"
        expected = f"{access} is {'allowed' if wanted else 'denied'} on {check.on}"
        try:
            yield _verdict(assertion, expected, decide(check, access, session), wanted=wanted)
        except NotEvaluatedError as error:
            yield Verdict(assertion, expected, str(error), "not evaluated")


def _verdict(assertion: str, expected: str, decisions: Sequence[Decision], *, wanted: bool) -> Verdict:
    against = [decision.what for decision in decisions if decision.is_allowed is not wanted]
    noun = "allowed" if wanted else "denied"
    if not against:
        return Verdict.of(assertion, expected, f"{noun}: {_listed([d.what for d in decisions])}", holds=True)
    other = "denied" if wanted else "allowed"
    return Verdict.of(assertion, expected, f"{other}: {_listed(against)} (of {len(decisions)})", holds=False)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _by_catalog(check: AccessCheck, access: Access, session: CheckSession) -> list[Decision]:
    """Return the decisions of the server for each table, and for writing on namespaces: to create tables there."""
    server = session.client.server()
    if server.authz_backend in {"", "allow-all"}:
        raise NotEvaluatedError("the server enforces no rights (authorizer allow-all), so this can be proven nowhere")
    operations = _operations(check, access, session)
    if not operations:
        raise NotEvaluatedError(f"{check.on} has no table to check with; create one, or name a table")
    found = action_checks.are_allowed(
        session.client, session.target.spec.project_id, _identity(check, session), [*operations.values()]
    )
    return [Decision(what, allowed) for what, allowed in zip(operations, found, strict=True)]


def _identity(check: AccessCheck, session: CheckSession) -> dict[str, str]:
    kind, _, name = check.principal.partition(":")
    if kind == "user":
        return {"user": name}
    if name not in session.role_ids:
        raise NotEvaluatedError(f"role {name} is not on the server; run `lakewright up`")
    return {"role": session.role_ids[name]}


def _operations(check: AccessCheck, access: Access, session: CheckSession) -> dict[str, dict[str, Any]]:
    on = check.on
    warehouse_id = session.require_warehouse(on.warehouse)
    if on.table:
        *namespace, name = parse_parts(on.table)
        listed = [
            table
            for table in session.tables_in(on.warehouse, tuple(namespace))
            if (*table.namespace, table.name) == (*namespace, name)
        ]
        if not listed:
            raise NotEvaluatedError(f"table {on} does not exist, or this identity cannot see it")
    else:
        listed = session.tables_in(on.warehouse, tuple(on.namespace.split(".")) if on.namespace else None)
    found: dict[str, dict[str, Any]] = {
        f"{access} {table}": {
            "table": {
                "action": {"action": _ACTIONS[access]},
                "warehouse-id": warehouse_id,
                "table-id": table.tabular_id,
            }
        }
        for table in listed
    }
    if access == "write" and not on.table:
        declared = session.declared(on.warehouse).namespace_paths
        inside = [path for path in declared if on.namespace in (None, path) or path.startswith(f"{on.namespace}.")]
        for path in inside:
            found[f"create tables in {path}"] = {
                "namespace": {
                    "action": {"action": "create_table"},
                    "warehouse-id": warehouse_id,
                    "namespace": path.split("."),
                }
            }
    return found


def _by_policies(check: AccessCheck, access: Access, session: CheckSession) -> list[Decision]:
    """Return what the identity policies of an IAM role say about the files of the target."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs]

    bucket, prefix = session.bucket_of(check.on.warehouse)
    locations = _locations(check, session) or [prefix]
    reader = RoleReader(session.target.aws)
    try:
        policies = reader.read(check.principal).policies
    except (BotoCoreError, ClientError) as error:
        raise NotEvaluatedError(f"the policies of {check.principal} cannot be read: {error}") from None
    arn = bucket_arn(bucket.bucket, bucket.region)
    return [
        Decision(f"{action} {location}/*", allowing_statement(policies, _request(action, arn, location)) is not None)
        for location in locations
        for action in _S3_ACTIONS[access]
    ]


def _request(action: str, arn: str, location: str) -> PolicyRequest:
    return PolicyRequest(action, f"{arn}/{location}/{_CANARY}" if location else f"{arn}/{_CANARY}")


def _locations(check: AccessCheck, session: CheckSession) -> list[str]:
    """Return the key prefixes of the tables of a target that is smaller than its warehouse."""
    if not check.on.table and not check.on.namespace:
        return []
    named = parse_parts(check.on.table or "")
    namespace = tuple(named[:-1]) or tuple((check.on.namespace or "").split("."))
    found: list[str] = []
    for table in session.tables_in(check.on.warehouse, namespace):
        if named and (*table.namespace, table.name) != tuple(named):
            continue
        metadata = session.metadata(QualifiedName(check.on.warehouse, table.namespace, table.name)) or {}
        _, _, path = str(metadata.get("location") or "").partition("://")
        found.append(path.partition("/")[2].strip("/"))
    if not found:
        raise NotEvaluatedError(f"{check.on} has no table to check with; create one, or check the warehouse")
    return found
