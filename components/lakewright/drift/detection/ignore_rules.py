"""Apply the rules of `drift.ignore` to a report. Ignored differences remain in the report, with reason and expiry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fnmatch import fnmatchcase
from typing import Any

from pydantic import ValidationError

from lakewright.drift.model import Difference, DifferenceKind, DriftReport, IgnoredBy
from lakewright.spec.drift_rules import DriftRules, IgnoreRule
from lakewright.validation.documents import as_mapping
from lakewright.validation.problems import Problem, list_problems


@dataclass(frozen=True)
class PlacedRule:
    """A rule, and its location."""

    rule: IgnoreRule
    location: str
    """File and path: `tenants/Pulumi.acme.yaml: drift.ignore.0`."""


@dataclass
class RuleReview:
    """Rules that did not ignore anything in a run."""

    expired: dict[str, int] = field(default_factory=dict[str, int])
    """Differences that each expired rule would have ignored, by the rule's text."""
    unused: list[str] = field(default_factory=list[str])
    """Texts of rules in force that match no difference."""

    def list_notes(self) -> list[str]:
        """Return one line for each rule."""
        lines = [
            f"{text} is expired; remove or renew it"
            + (f". It no longer ignores {count} difference{'' if count == 1 else 's'}" if count else "")
            for text, count in self.expired.items()
        ]
        return lines + [f"{text} matches nothing in this run" for text in self.unused]


def _drop_audit(drift: object) -> object:
    section = as_mapping(drift)
    return {key: value for key, value in section.items() if key != "audit"} if section else drift


def read_rules(drift: object, source: str) -> tuple[list[PlacedRule], list[str]]:
    """Return the rules of a section `drift` as written, and the problems of an invalid section.

    Args:
        drift: The section of a spec or an environment, unchecked.
        source: Its file.
    """
    if drift is None:
        return [], []
    try:
        # Environments also have settings about drift that are not rules.
        rules = DriftRules.model_validate(_drop_audit(drift))
    except ValidationError as error:
        return [], [f"{source}: {_prefix_path(problem)}" for problem in list_problems(error, as_mapping(drift))]
    return [PlacedRule(rule, f"{source}: drift.ignore.{index}") for index, rule in enumerate(rules.ignore)], []


def apply_rules(report: DriftReport, rules: Mapping[str, Sequence[PlacedRule]], today: date) -> RuleReview:
    """Mark the differences that a rule ignores, and return the rules that ignore none.

    Args:
        report: The report, which is changed.
        rules: The rules of each stack.
        today: The day in UTC. A rule is in force until the end of its last day.
    """
    rules_by_location = {placed.location: placed for stack_rules in rules.values() for placed in stack_rules}
    used = dict.fromkeys(rules_by_location, 0)
    for stack in report.stacks:
        stack_rules = rules.get(stack.stack, ())
        for index, difference in enumerate(stack.differences):
            matching = [placed for placed in stack_rules if matches(placed.rule, difference)]
            for placed in matching:
                used[placed.location] += 1
            in_force = next((placed for placed in matching if placed.rule.until >= today), None)
            if in_force is not None:
                ignored = IgnoredBy(in_force.rule.reason, in_force.rule.until.isoformat(), in_force.location)
                stack.differences[index] = replace(difference, ignored=ignored)
    review = RuleReview()
    for location, placed in rules_by_location.items():
        if placed.rule.until < today:
            review.expired[_format_rule(placed)] = used[location]
        elif not used[location]:
            review.unused.append(_format_rule(placed))
    return review


def matches(rule: IgnoreRule, difference: Difference) -> bool:
    """Return whether a rule is about a difference. An object that could not be checked is never ignored."""
    if difference.kind is DifferenceKind.UNREACHABLE:
        return False
    kind = difference.type.rpartition(":")[2]
    names = (difference.resource, difference.type, kind, f"{kind} {difference.resource}", difference.urn)
    return any(_fits(rule.resource, name) for name in names if name) and _fits_path(rule.property, difference.property)


def _fits_path(pattern: str, path: str) -> bool:
    """Return whether a pattern fits a path or one of its parents. Only `*` fits a whole object."""
    if not path:
        return pattern == "*"
    parents = [path[:end] for end, sign in enumerate(path) if sign in ".["]
    return any(_fits(pattern, candidate) for candidate in (path, *parents))


def _fits(pattern: str, text: str) -> bool:
    return fnmatchcase(text, pattern.replace("[", "[[]"))


def _format_rule(placed: PlacedRule) -> str:
    rule = placed.rule
    return f"{placed.location} ({rule.resource}, {rule.property}, until {rule.until.isoformat()})"


def _prefix_path(problem: Problem) -> Problem:
    return replace(problem, path=f"drift.{problem.path}" if problem.path else "drift")


def read_stack_rules(
    spec: Mapping[str, Any], spec_file: str, environment: Mapping[str, Any], environment_file: str
) -> tuple[list[PlacedRule], list[str]]:
    """Return the rules of a stack, first of its spec, then of its environment; and their problems."""
    stack_rules, problems = read_rules(spec.get("drift"), spec_file)
    shared, shared_problems = read_rules(environment.get("drift"), environment_file)
    return [*stack_rules, *shared], [*problems, *shared_problems]
