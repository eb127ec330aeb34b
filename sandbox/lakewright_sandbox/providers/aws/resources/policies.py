"""Policy documents: canonical forms for comparison, and the result of `getPolicyDocument`."""

from __future__ import annotations

import json
import zlib
from typing import Any

from lakewright_sandbox.providers.protocol.errors import SandboxProviderError
from lakewright_sandbox.providers.protocol.properties import Properties
from lakewright_sandbox.typed.json_values import is_array, is_object

_VERSION = "2012-10-17"


def canonical(document: Any) -> Any:
    """Return a form that is equal for documents that AWS takes as equal, in any order and with any single-item lists.

    A value that is not a JSON object is returned unchanged.
    """
    if isinstance(document, str):
        try:
            document = json.loads(document)
        except ValueError:
            return document
    if not is_object(document):
        return document
    statements = [_statement(statement) for statement in _as_list(document.get("Statement", []))]
    return document | {"Statement": sorted(statements, key=_text)}


def _statement(statement: Any) -> Any:
    if not is_object(statement):
        return statement
    form = dict(statement)
    for key in ("Action", "NotAction", "Resource", "NotResource"):
        if key in form:
            form[key] = sorted(set(_as_list(form[key])))
    for key in ("Principal", "NotPrincipal"):
        if key in form:
            principals = {"AWS": "*"} if form[key] == "*" else form[key]
            form[key] = {kind: sorted(set(_as_list(names))) for kind, names in principals.items()}
    conditions: dict[str, Properties] = form.pop("Condition", None) or {}
    if conditions:
        form["Condition"] = {
            test: {key: sorted(_condition_value(v) for v in _as_list(values)) for key, values in tests.items()}
            for test, tests in conditions.items()
        }
    if not form.get("Sid"):
        form.pop("Sid", None)
    return form


def _condition_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _as_list(value: Any) -> list[Any]:
    return value if is_array(value) else [value]


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def policy_document(args: Properties) -> Properties:
    """Return the result of `aws:iam/getPolicyDocument`: statements, added to sources, with overrides applied.

    A sid must be unique among sources and statements; an override replaces the statement with the same sid.
    """
    sources: list[str] = list(args.get("sourcePolicyDocuments") or [])
    overrides: list[str] = list(args.get("overridePolicyDocuments") or [])
    version = args.get("version") or _VERSION
    declared_statements: list[Properties] = args.get("statements") or []
    rendered_statements = [_render(statement, version) for statement in declared_statements]
    statements: list[Properties] = []
    sids: set[str] = set()
    for statement in [s for text in sources for s in _parse_statements(text)] + rendered_statements:
        sid = statement.get("Sid", "")
        if sid and sid in sids:
            raise SandboxProviderError(
                f"getPolicyDocument: the sid {sid!r} occurs twice; sids of one document must be unique"
            )
        sids.add(sid)
        statements.append(statement)
    for statement in [s for text in overrides for s in _parse_statements(text)]:
        sid = statement.get("Sid", "")
        places = [index for index, existing in enumerate(statements) if sid and existing.get("Sid") == sid]
        if places:
            statements[places[0]] = statement
        else:
            statements.append(statement)
    document: Properties = {"Version": version}
    if args.get("policyId"):
        document["Id"] = args["policyId"]
    document["Statement"] = statements
    compact = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return args | {
        "id": str(zlib.crc32(json.dumps(document, indent=2, ensure_ascii=False).encode())),
        "json": json.dumps(document, indent=2, ensure_ascii=False),
        "minifiedJson": compact,
        "version": version,
    }


def _parse_statements(text: str) -> list[Properties]:
    try:
        document = json.loads(text)
        return list(_as_list(document.get("Statement", [])))
    except (ValueError, AttributeError) as error:
        raise SandboxProviderError(
            f"getPolicyDocument: a source or override document is not a policy document: {error}"
        ) from error


def _render(statement: Properties, version: str) -> Properties:
    form: Properties = {}
    if statement.get("sid"):
        form["Sid"] = statement["sid"]
    form["Effect"] = statement.get("effect") or "Allow"
    for key, name in (("actions", "Action"), ("notActions", "NotAction"), ("resources", "Resource")):
        if statement.get(key):
            form[name] = _collapse(statement[key], version)
    if statement.get("notResources"):
        form["NotResource"] = _collapse(statement["notResources"], version)
    for key, name in (("principals", "Principal"), ("notPrincipals", "NotPrincipal")):
        if statement.get(key):
            form[name] = _principals(statement[key], version)
    conditions: dict[str, dict[str, Any]] = {}
    declared_conditions: list[Properties] = statement.get("conditions") or []
    for condition in declared_conditions:
        tests = conditions.setdefault(condition["test"], {})
        variable = condition["variable"]
        values = [*_as_list(tests.get(variable, [])), *condition["values"]]
        tests[variable] = _collapse(values, version)
    if conditions:
        form["Condition"] = conditions
    return form


def _principals(principals: list[Properties], version: str) -> Any:
    by_kind: dict[str, list[str]] = {}
    for principal in principals:
        by_kind.setdefault(principal["type"], []).extend(principal["identifiers"])
    if list(by_kind) == ["*"] and by_kind["*"] == ["*"]:
        return "*"
    return {kind: _collapse(names, version) for kind, names in sorted(by_kind.items())}


def _collapse(values: list[str], version: str) -> Any:
    """Return a list as the real function writes it: `&{...}` becomes `${...}`, a single item is not a list."""
    spelt = [value.replace("&{", "${") if version == _VERSION else value for value in map(str, values)]
    unique = sorted(set(spelt), reverse=True)
    return unique[0] if len(unique) == 1 else unique
