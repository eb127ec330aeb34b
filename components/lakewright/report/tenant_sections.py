"""The parts of a tenant's entry, each from the entry of its stack in one source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from lakewright_spark.times import format_json_time

from lakewright.report.levels import Level, find_worst
from lakewright.terminal.text_lines import plural
from lakewright.validation.documents import as_list, as_mapping, as_text
from lakewright.validation.moment import parse_end

MOST_ITEMS = 200
"""Differences, checks or tables of a tenant that the page lists."""
SHARE_WARNING = timedelta(days=30)
"""A share that ends within this time needs attention."""
_MOST_TABLES = 10
_MOST_VALUE_CHARACTERS = 400

Entry = Mapping[str, Any]


def describe_state(entry: Entry | None) -> dict[str, Any]:
    """Return the state of a stack from `fleet list`."""
    if entry is None:
        return {"level": Level.NONE, "text": "no state"}
    text = as_text(entry.get("condition")) or "unknown"
    if entry.get("problem") or entry.get("pending") or entry.get("last_result") == "failed":
        level = Level.BAD
    elif entry.get("locked_by") or not entry.get("has_file", True):
        level = Level.WARN
    else:
        level = Level.OK if entry.get("has_state") else Level.NONE
    return {"level": level, "text": text}


def describe_drift(entry: Entry | None) -> dict[str, Any] | None:
    """Return the drift of a stack from `drift`; None if the stack was not compared."""
    if entry is None:
        return None
    differences = [as_mapping(difference) for difference in as_list(entry.get("differences"))]
    unreachable = [item for item in differences if item.get("kind") == "unreachable"]
    active = [item for item in differences if not item.get("ignored") and item.get("kind") != "unreachable"]
    problems = [str(problem) for problem in as_list(entry.get("problems"))]
    is_incomplete = bool(problems or unreachable)
    texts = [plural(len(active), "difference")] if active else [] if is_incomplete else ["none"]
    return {
        "level": Level.BAD if active else Level.WARN if is_incomplete else Level.OK,
        "text": ", ".join(texts + (["not fully checked"] if is_incomplete else [])),
        "count": len(active),
        "ignored": sum(bool(item.get("ignored")) for item in differences),
        "items": [_describe_difference(item) for item in differences[:MOST_ITEMS]],
        "problems": problems,
    }


def _describe_difference(difference: Entry) -> dict[str, Any]:
    actor, rule = as_mapping(difference.get("actor")), as_mapping(difference.get("ignored"))
    return {
        **{key: as_text(difference.get(key)) or "" for key in ("kind", "resource", "type", "property")},
        "declared": _format_value(difference.get("declared")),
        "found": _format_value(difference.get("found")),
        "actor": as_text(actor.get("name")) or "",
        "at": as_text(actor.get("at")) or "",
        "ignored": as_text(rule.get("reason")) or ("by a rule" if rule else ""),
        "until": as_text(rule.get("until")) or "",
    }


def _format_value(value: object) -> str:
    text = "" if value is None else value if isinstance(value, str) else str(value)
    return text if len(text) <= _MOST_VALUE_CHARACTERS else f"{text[:_MOST_VALUE_CHARACTERS]}..."


def describe_checks(entry: Entry | None) -> dict[str, Any] | None:
    """Return the results of `check`; None if the spec has no checks."""
    if entry is None:
        return None
    checks = [as_mapping(check) for check in as_list(entry.get("checks"))]
    problems = [str(problem) for problem in as_list(entry.get("problems"))]
    failed = sum(check.get("outcome") == "failed" for check in checks)
    unknown = sum(check.get("outcome") == "not evaluated" for check in checks)
    is_incomplete = bool(unknown or problems)
    return {
        "level": Level.BAD if failed else Level.WARN if is_incomplete else Level.OK,
        "text": f"{failed} of {len(checks)} failed"
        if failed
        else ("not evaluated" if problems else f"{unknown} of {len(checks)} not evaluated")
        if is_incomplete
        else f"{len(checks)} passed",
        "items": [
            {key: as_text(check.get(key)) or "" for key in ("check", "assertion", "expected", "found", "outcome", "at")}
            for check in checks[:MOST_ITEMS]
        ],
        "problems": problems,
    }


def describe_restrictions(entry: Entry | None) -> dict[str, Any] | None:
    """Return the archived warehouses and enforced limits of `fleet status`; None if they were not read."""
    if entry is None:
        return None
    archives = [as_mapping(archive) for archive in as_list(entry.get("archives"))]
    limits = [as_mapping(limit) for limit in as_list(entry.get("limits"))]
    grants = [as_mapping(grant) for grant in as_list(entry.get("suspended_grants"))]
    parts = [str(part) for part in as_list(entry.get("limited_parts"))]
    problems = [str(problem) for problem in as_list(entry.get("problems"))]
    texts = [f"{len(archives)} archived"] if archives else []
    texts += [plural(len(parts), "enforced limit")] if parts else []
    is_due = any(archive.get("announced_at") or archive.get("problem") for archive in archives)
    return {
        "level": Level.WARN if problems or parts or is_due else Level.OK,
        "text": ", ".join(texts) or ("not read" if problems else "none"),
        "archives": [
            {
                **{key: as_text(archive.get(key)) or "" for key in ("warehouse", "archived_at", "purge_at", "problem")},
                "announced_at": as_text(archive.get("announced_at")) or "",
                "is_reactivated": archive.get("is_reactivated") is True,
                "has_begun": archive.get("has_begun") is True,
            }
            for archive in archives[:MOST_ITEMS]
        ],
        "limited_parts": parts[:MOST_ITEMS],
        "limits": [
            {key: str(limit.get(key, "")) for key in ("part", "quantity", "limit", "since")}
            for limit in limits[:MOST_ITEMS]
        ],
        "suspended": [
            {key: as_text(grant.get(key)) or "" for key in ("principal", "privilege", "on")}
            for grant in grants[:MOST_ITEMS]
        ],
        "problems": problems,
    }


def describe_verification(entry: Entry | None) -> dict[str, Any] | None:
    """Return the results of `fleet verify`; None if the stack was not verified, or does not exist."""
    if entry is None or entry.get("status") in ("not deployed", "skipped"):
        return None
    checks = [as_mapping(check) for check in as_list(entry.get("checks"))]
    failed = [check for check in checks if not check.get("holds")]
    error = as_text(entry.get("error")) or ""
    holds = entry.get("holds") is True
    level = Level.OK if holds else Level.BAD if failed else Level.WARN
    return {
        "level": level,
        "text": f"{len(checks)} of {len(checks)} hold"
        if holds
        else f"{len(failed)} of {len(checks)} failed"
        if failed
        else "no result",
        "items": [
            {
                key: as_text(check.get(key)) or ""
                for key in ("probe", "identity", "warehouse", "attempt", "expected", "found", "evidence", "remedy")
            }
            for check in failed[:MOST_ITEMS]
        ],
        "problems": [error] if error and not failed else [],
    }


def describe_usage(entry: Entry | None, history: Iterable[tuple[str, Entry]]) -> dict[str, Any] | None:
    """Return the storage use of `fleet usage`; None if it was not measured.

    Args:
        entry: The tenant's latest entry.
        history: Times and reports of all sources, the earliest first.
    """
    if entry is None or entry.get("deployed") is False:
        return None
    report = as_mapping(entry.get("usage"))
    problem = as_text(entry.get("problem")) or ""
    total, growth = as_mapping(report.get("total")), as_mapping(as_mapping(report.get("total")).get("growth"))
    return {
        "level": Level.WARN if problem else Level.OK,
        "live": _read_count(total, "bytes_live"),
        "reclaimable": _read_count(total, "bytes_reclaimable"),
        "tables": _read_count(total, "tables"),
        "files": _read_count(total, "files"),
        "growth": {"bytes": _read_count(growth, "bytes"), "since": as_text(growth.get("since")) or ""}
        if growth
        else None,
        "is_measured": bool(report),
        "largest": _list_largest_tables(report),
        "history": [
            [at, _read_count(as_mapping(earlier.get("total")), "bytes_live")] for at, earlier in history if earlier
        ],
        "problems": [problem] if problem else [],
    }


def _list_largest_tables(report: Entry) -> list[dict[str, Any]]:
    tables = [
        {
            "table": as_text(table.get("table")) or "",
            "live": _read_count(table, "bytes_live"),
            "reclaimable": _read_count(table, "bytes_reclaimable"),
            "files": _read_count(table, "files"),
            "snapshots": _read_count(table, "snapshots"),
        }
        for warehouse in map(as_mapping, as_list(report.get("warehouses")))
        for table in map(as_mapping, as_list(warehouse.get("each_table")))
    ]
    return sorted(tables, key=lambda table: -int(table["live"]))[:_MOST_TABLES]


def _read_count(mapping: Entry, name: str) -> int:
    value = mapping.get(name)
    return int(value) if isinstance(value, int | float) else 0


def describe_shares(parts: Entry, now: datetime) -> list[dict[str, Any]]:
    """Return the shares of a tenant's warehouses. A share with `until` expires at `ends_at`: a day is included.

    Args:
        parts: The declared parts of `fleet list`.
        now: The time of the report.
    """
    return [
        {
            "warehouse": as_text(warehouse.get("name")) or "",
            **{key: as_text(share.get(key)) or "" for key in ("name", "principal", "until")},
            "ends_at": "" if end is None else format_json_time(end),
            "level": _judge_end(end, now),
        }
        for warehouse in map(as_mapping, as_list(parts.get("warehouses")))
        for share in map(as_mapping, as_list(warehouse.get("shares")))
        for end in [_parse_until(as_text(share.get("until")) or "")]
    ]


def _parse_until(until: str) -> datetime | None:
    """Return the end of a share; None without one. Specs in documents are unchecked, so the text may be no time."""
    try:
        return parse_end(until)
    except ValueError:
        return None


def _judge_end(end: datetime | None, now: datetime) -> Level:
    if end is None:
        return Level.NONE
    return Level.BAD if end <= now else Level.WARN if end - now <= SHARE_WARNING else Level.OK


def judge_tenant(sections: Iterable[Mapping[str, Any] | None], shares: Iterable[Entry]) -> Level:
    """Return the most serious level of a tenant's parts."""
    levels = [Level(section["level"]) for section in sections if section]
    return find_worst([*levels, *(Level(share["level"]) for share in shares)])
