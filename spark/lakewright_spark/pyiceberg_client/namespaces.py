"""The namespaces of a catalog, to any depth, through PyIceberg."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError


def namespaces(
    catalog: Catalog,
    parent: tuple[str, ...] = (),
    *,
    on_error: Callable[[tuple[str, ...], Exception], None] | None = None,
) -> Iterator[tuple[str, ...]]:
    """Yield every namespace below one, parents first; one that is dropped meanwhile is left out.

    `on_error` gets a namespace whose children cannot be listed, and why. Without it, and for the root, that is raised.
    """
    try:
        found = catalog.list_namespaces(parent)
    except NoSuchNamespaceError:
        return
    except Exception as error:
        if on_error is None or not parent:
            raise
        on_error(parent, error)
        return
    for one in found:
        # A catalog in a database answers with every level below, a service with the next one.
        if len(one) == len(parent) + 1:
            yield tuple(one)
            yield from namespaces(catalog, tuple(one), on_error=on_error)
