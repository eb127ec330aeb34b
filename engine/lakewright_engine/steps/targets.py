"""The resources that an operation targets: `--target`, `--exclude` and `--replace`, by the rules of the Pulumi CLI."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence

from lakewright_engine.model.errors import EngineError
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.model.urns import ROOT_STACK_TYPE, is_provider_type, split_reference
from lakewright_engine.state.integrity import references


class UrnPatterns:
    """URNs and globs. `*` matches any characters except colons, `**` any characters."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """Compile the patterns."""
        texts = list(patterns)
        self.literals = [text for text in texts if "*" not in text]
        self._globs = [_glob(text) for text in texts if "*" in text]

    def __bool__(self) -> bool:
        """Return whether there are patterns."""
        return bool(self.literals or self._globs)

    def matches(self, urn: str) -> bool:
        """Return whether a pattern matches a URN."""
        return urn in self.literals or any(glob.fullmatch(urn) for glob in self._globs)

    def refuse_unknown(self, known_urns: Iterable[str]) -> None:
        """Refuse URNs of unknown resources. Globs may match nothing.

        Raises:
            EngineError: A URN is unknown.
        """
        everything = set(known_urns)
        unknown = [urn for urn in self.literals if urn not in everything]
        if unknown:
            raise EngineError("\n".join(f"no resource named '{urn}' found" for urn in unknown))


class TargetScope:
    """The part of a stack that an operation targets: all resources, the targets, or all but the exclusions.

    Thread-safe. Resources are checked when they are registered, after their dependencies.
    """

    def __init__(
        self,
        targets: Iterable[str] = (),
        excludes: Iterable[str] = (),
        replace: Iterable[str] = (),
        *,
        target_dependents: bool = False,
        exclude_dependents: bool = False,
    ) -> None:
        """Create a scope from URNs and globs."""
        self.targets = UrnPatterns(targets)
        self.excludes = UrnPatterns(excludes)
        self.replace = UrnPatterns(replace)
        self.target_dependents = target_dependents
        self.exclude_dependents = exclude_dependents
        self._lock = threading.Lock()
        self._reached: set[str] = set()
        """Registered resources that are targeted or excluded, including dependents."""
        self._skipped: set[str] = set()

    @property
    def is_limited(self) -> bool:
        """Return whether some resources are not targeted."""
        return bool(self.targets or self.excludes)

    def includes(self, state: ResourceState) -> bool:
        """Return whether the operation targets a registered resource. Providers and the stack are always targeted."""
        if not self.is_limited:
            return True
        patterns = self.targets or self.excludes
        follows = self.target_dependents if self.targets else self.exclude_dependents
        with self._lock:
            is_meant = patterns.matches(state.urn) or (
                follows and any(urn in self._reached or patterns.matches(urn) for urn in list_required_urns(state))
            )
            is_implicit = is_provider_type(state.type) or state.type == ROOT_STACK_TYPE
            if is_meant and (self.targets or not is_implicit):
                self._reached.add(state.urn)
        return is_implicit or is_meant == bool(self.targets)

    def skip(self, urn: str) -> None:
        """Record that a resource is not created because it is not targeted."""
        with self._lock:
            self._skipped.add(urn)

    def list_skipped_dependencies(self, state: ResourceState) -> list[str]:
        """Return the dependencies of a resource that are not created."""
        with self._lock:
            return sorted(list_required_urns(state) & self._skipped)

    def select_refreshed(self, resources: Sequence[ResourceState]) -> list[ResourceState]:
        """Return the resources to refresh. A resource that uses a provider is not its dependent here."""
        if self.targets:
            return _select_reached(resources, self.targets, follows=self.target_dependents)
        excluded = _select_reached(resources, self.excludes, follows=self.exclude_dependents)
        left_out = {id(state) for state in excluded}
        return [state for state in resources if id(state) not in left_out]

    def refuse_unknown(self, known_urns: Iterable[str]) -> None:
        """Refuse targets and exclusions that are URNs of unknown resources.

        Raises:
            EngineError: A URN is unknown.
        """
        everything = set(known_urns)
        self.targets.refuse_unknown(everything)
        self.excludes.refuse_unknown(everything)


def list_required_urns(state: ResourceState) -> set[str]:
    """Return the URNs that a resource depends on, including parent and provider."""
    provider = {split_reference(state.provider)[0]} if state.provider else set[str]()
    return {urn for _, urn in references(state)} | provider


def sort_by_dependency(resources: Sequence[ResourceState]) -> list[ResourceState]:
    """Move resources after their dependencies, with as few changes of the order as possible.

    An operation on a part of the stack mixes old and new states, whose dependencies may differ from the program's
    and may follow them.
    """
    by_urn: dict[str, ResourceState] = {}
    for state in resources:
        if state.urn not in by_urn or not state.delete:
            by_urn[state.urn] = state
    providers = {f"{state.urn}::{state.id}": state for state in resources if is_provider_type(state.type)}
    entered: set[int] = set()
    result: list[ResourceState] = []
    for first in resources:
        stack = [(first, False)]
        while stack:
            state, is_ready = stack.pop()
            if is_ready:
                result.append(state)
            elif id(state) not in entered:
                entered.add(id(state))
                stack.append((state, True))
                needed = [by_urn.get(urn) for _, urn in references(state)]
                needed.append(providers.get(state.provider))
                stack.extend((other, False) for other in needed if other is not None)
    return result


def _select_reached(resources: Sequence[ResourceState], patterns: UrnPatterns, *, follows: bool) -> list[ResourceState]:
    """Return the states that the patterns match, and with `follows` their dependents."""
    urns: set[str] = set()
    reached_states: list[ResourceState] = []
    for state in resources:
        if patterns.matches(state.urn) or (
            follows and any(urn in urns or patterns.matches(urn) for _, urn in references(state))
        ):
            urns.add(state.urn)
            reached_states.append(state)
    return reached_states


def _glob(text: str) -> re.Pattern[str]:
    parts = ("[^:]*".join(re.escape(piece) for piece in part.split("*")) for part in text.split("**"))
    return re.compile(".*".join(parts))
