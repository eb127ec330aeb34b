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
    warehouses_with_other_id: tuple[str, ...] = ()
    """Warehouses that still use another external ID, which an earlier `up` made."""


def is_in_configuration(storage: ExistingStorage) -> bool:
    """Return whether the stack's configuration holds the external ID of a storage, and not its spec."""
    external_id = storage.external_id_of_tenant
    return external_id is None or external_id.startswith(_CONFIG)


def reserve_external_id(
    name: str,
    storage: ExistingStorage,
    settings: SecretSettings,
    existing_ids: Mapping[str, str],
    warehouses: Sequence[str],
) -> Reservation:
    """Return the external ID of a storage. Make and keep a new ID if there is none.

    An external ID that an earlier `up` made remains in use: a role may require it already.

    Args:
        name: Name of the storage.
        storage: The storage.
        settings: The stack's configuration. It is changed in memory.
        existing_ids: External IDs in the stack's state, by name of the warehouse.
        warehouses: Names of the storage's warehouses.
    """
    declared_id = storage.external_id_of_tenant
    if declared_id is not None and not is_in_configuration(storage):
        return Reservation(declared_id, is_new=False, key=None)
    key = declared_id.removeprefix(_CONFIG) if declared_id else name_external_id_key(name)
    if reserved_id := settings.get(key):
        return Reservation(
            reserved_id,
            is_new=False,
            key=key,
            warehouses_with_other_id=_list_warehouses_with_other_id(reserved_id, existing_ids, warehouses),
        )
    earlier = [existing_ids[warehouse] for warehouse in warehouses if warehouse in existing_ids]
    external_id = earlier[0] if earlier else str(uuid.uuid4())
    settings.set(key, external_id, secret=True)
    return Reservation(
        external_id,
        is_new=not earlier,
        key=key,
        warehouses_with_other_id=_list_warehouses_with_other_id(external_id, existing_ids, warehouses),
    )


def _list_warehouses_with_other_id(
    external_id: str, existing_ids: Mapping[str, str], warehouses: Sequence[str]
) -> tuple[str, ...]:
    return tuple(name for name in warehouses if existing_ids.get(name, external_id) != external_id)
