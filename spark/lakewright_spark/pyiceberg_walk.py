"""The namespaces of a catalog, to any depth, through PyIceberg."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError


def namespaces(catalog: Catalog, parent: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every namespace below one, parents first; one that somebody drops meanwhile is left out."""
    with suppress(NoSuchNamespaceError):
        for one in catalog.list_namespaces(parent):
            # A catalog in a database answers with every level below, a service with the next one.
            if len(one) == len(parent) + 1:
                yield tuple(one)
                yield from namespaces(catalog, tuple(one))
