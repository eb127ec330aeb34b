"""The order of deletions: a resource is deleted after everything that depends on it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from lakewright_engine.model.resources import ResourceState
from lakewright_engine.steps.targets import list_required_urns


def deletion_batches(needed: Dependencies, deleted: Sequence[ResourceState]) -> list[list[ResourceState]]:
    """Return the states to delete in batches. The deletions of a batch may run in parallel, batch after batch.

    A state depends only on states before it in the snapshot, so there are no cycles. A URN may occur twice, as the
    live object and as an object that a replacement left, with dependencies in opposite directions.

    Args:
        needed: The dependencies of the snapshot's states.
        deleted: The states to delete.
    """
    condemned = {id(state) for state in deleted}
    depths: dict[int, int] = {}
    batches: defaultdict[int, list[ResourceState]] = defaultdict(list)
    for position, state in enumerate(needed.resources):
        if id(state) in condemned:
            depth = max((depths[other] + 1 for other in needed.list_direct(position) if other in depths), default=0)
            depths[position] = depth
            batches[depth].append(state)
    return [batches[depth] for depth in sorted(batches, reverse=True)]


class Dependencies:
    """The dependencies of each state of a snapshot, by position."""

    def __init__(self, resources: Sequence[ResourceState]) -> None:
        """Index the states of a snapshot."""
        self.resources = resources
        self._positions: defaultdict[str, list[int]] = defaultdict(list)
        self._descendants: defaultdict[str, list[int]] = defaultdict(list)
        parents: dict[str, str] = {}
        for position, state in enumerate(resources):
            self._positions[state.urn].append(position)
            parents[state.urn] = state.parent
            ancestor = state.parent
            while ancestor and ancestor != state.urn:
                self._descendants[ancestor].append(position)
                ancestor = parents.get(ancestor, "")

    def list_all(self, state: ResourceState) -> list[ResourceState]:
        """Return everything that a state depends on, directly or indirectly."""
        position = next(index for index, other in enumerate(self.resources) if other is state)
        reached: set[int] = set()
        frontier = [position]
        while frontier:
            new = self.list_direct(frontier.pop()) - reached
            reached |= new
            frontier.extend(new)
        return [self.resources[index] for index in sorted(reached)]

    def list_direct(self, position: int) -> set[int]:
        """Return the positions of the states that a state depends on directly.

        A dependency on a component includes the component's descendants that precede the state.
        """
        state = self.resources[position]
        positions = {other for other in self._positions[state.parent] if other < position}
        for urn in list_required_urns(state) - {state.parent}:
            for other in self._positions[urn]:
                if other >= position:
                    continue
                positions.add(other)
                if not self.resources[other].custom:
                    positions.update(inner for inner in self._descendants[urn] if inner < position)
        return positions
