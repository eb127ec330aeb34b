"""Find the state of a resource under its URN or one of its aliases."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright_engine.model.errors import ProgramError
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.model.urns import Urn, make_urn
from lakewright_engine.registration.desired_state import AliasSpec, DesiredState


class Aliases:
    """The old and new URNs of renamed resources. Children inherit the aliases of their parents."""

    def __init__(self, project: str, stack: str) -> None:
        """Start without renamed resources."""
        self._project = project
        self._stack = stack
        self._old_names: dict[str, str] = {}
        self._new_names: dict[str, str] = {}

    @property
    def matched(self) -> set[str]:
        """Old URNs under which resources were found."""
        return set(self._new_names)

    def current(self, old_urn: str) -> str:
        """Return the new URN of an old URN."""
        return self._new_names.get(old_urn, old_urn)

    def find(
        self, urn: str, desired: DesiredState, olds: dict[str, ResourceState], taken: set[str]
    ) -> ResourceState | None:
        """Return the old state. Raise ProgramError if an alias belongs to another resource of the program."""
        for candidate in [urn, *self._candidates(desired)]:
            old = olds.get(candidate)
            if old is None:
                continue
            if candidate != urn:
                if candidate in taken or candidate in self._new_names:
                    owner = self._new_names.get(candidate, candidate)
                    raise ProgramError(
                        f"Duplicate resource alias '{candidate}' applied to resource with URN '{urn}' conflicting with "
                        f"resource with URN '{owner}'"
                    )
                self._new_names[candidate] = urn
                self._old_names[urn] = candidate
            return old
        return None

    def _candidates(self, desired: DesiredState) -> Iterator[str]:
        own_aliases = [self._collapse(desired, alias) for alias in desired.aliases]
        yield from own_aliases
        parent_alias = self._old_names.get(desired.parent)
        if parent_alias is not None:
            yield self._inherit(desired.type, desired.name, desired.parent, parent_alias)
            for alias in own_aliases:
                parsed = Urn.parse(alias)
                yield self._inherit(parsed.type, parsed.name, desired.parent, parent_alias)

    def _collapse(self, desired: DesiredState, alias: AliasSpec) -> str:
        if alias.urn:
            return alias.urn
        parent = self._old_names.get(alias.parent, alias.parent) if alias.parent else desired.parent
        return make_urn(
            alias.stack or self._stack,
            alias.project or self._project,
            "" if alias.no_parent else parent,
            alias.type or desired.type,
            alias.name or desired.name,
        )

    def _inherit(self, type_: str, name: str, parent: str, parent_alias: str) -> str:
        old_parent = Urn.parse(parent_alias).name
        new_parent = Urn.parse(parent).name
        if name.startswith(new_parent):
            name = old_parent + name.removeprefix(new_parent)
        return make_urn(self._stack, self._project, parent_alias, type_, name)
