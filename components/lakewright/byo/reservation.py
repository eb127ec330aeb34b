"""The external ID of a storage: reserved in the stack's configuration, encrypted, before the role exists."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lakewright.storage.existing import ExistingStorage, name_external_id_key

_CONFIG = "config:"


class SecretSettings(Protocol):
    """A stack's configuration, whose secrets are encrypted."""

    def get(self, key: str) -> str | None:
        """Return a value, decrypted; None if there is none."""
        ...

    def set(self, key: str, value: str, *, secret: bool) -> None:
        """Set a value."""
        ...


@dataclass(frozen=True)
class Reservation:
    """The external ID of a storage."""

    external_id: str
    is_new: bool
    key: str | None
    """Key of the configuration that holds it; None if the spec does."""
    others: tuple[str, ...] = ()
    """Warehouses that still use another external ID, which an earlier `up` made."""


def is_kept(storage: ExistingStorage) -> bool:
    """Return whether the stack's configuration holds the external ID of a storage, and not its spec."""
    chosen = storage.external_id_of_tenant
    return chosen is None or chosen.startswith(_CONFIG)


def reserve_external_id(
    name: str, storage: ExistingStorage, settings: SecretSettings, made: Mapping[str, str], warehouses: Sequence[str]
) -> Reservation:
    """Return the external ID of a storage. Make and keep one if there is none.

    An external ID that an earlier `up` made stays in use: a role may require it already.

    Args:
        name: Name of the storage.
        storage: The storage.
        settings: The stack's configuration. It is changed in memory.
        made: External IDs in the stack's state, by name of the warehouse.
        warehouses: Names of the storage's warehouses.
    """
    chosen = storage.external_id_of_tenant
    if chosen is not None and not is_kept(storage):
        return Reservation(chosen, is_new=False, key=None)
    key = chosen.removeprefix(_CONFIG) if chosen else name_external_id_key(name)
    if kept := settings.get(key):
        return Reservation(kept, is_new=False, key=key, others=_others(kept, made, warehouses))
    earlier = [made[warehouse] for warehouse in warehouses if warehouse in made]
    external_id = earlier[0] if earlier else str(uuid.uuid4())
    settings.set(key, external_id, secret=True)
    return Reservation(external_id, is_new=not earlier, key=key, others=_others(external_id, made, warehouses))


def _others(external_id: str, made: Mapping[str, str], warehouses: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in warehouses if made.get(name, external_id) != external_id)
