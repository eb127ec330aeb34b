"""Warehouses that a command goes on without: those that its identity may not use, and those that fail."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from lakewright_spark.errors import (
    AccessDeniedError,
    CatalogUnreachableError,
    JobFailedError,
    LakewrightSparkError,
    WarehouseHiddenError,
)


@dataclass
class UnavailableWarehouses:
    """What a command could not use. One warehouse that fails stops no work in another one."""

    chosen: Collection[str] = ()
    """Warehouses that the user named: one that the identity may not use counts as failed."""
    hidden: dict[str, LakewrightSparkError] = field(default_factory=dict[str, LakewrightSparkError])
    """Warehouse -> how the catalog refused this identity."""
    failed: dict[str, LakewrightSparkError] = field(default_factory=dict[str, LakewrightSparkError])
    """Warehouse -> why it could not be used."""

    @contextmanager
    def leaving_out(self, warehouse: str) -> Iterator[None]:
        """Keep what goes wrong with this warehouse in the block. Errors about the caller itself are raised."""
        try:
            yield
        except (WarehouseHiddenError, AccessDeniedError) as error:
            (self.failed if warehouse in self.chosen else self.hidden)[warehouse] = error
        except (CatalogUnreachableError, JobFailedError) as error:
            self.failed[warehouse] = error

    def __contains__(self, warehouse: object) -> bool:
        return warehouse in self.hidden or warehouse in self.failed

    def check_any_left(self, warehouses: Collection[str]) -> None:
        """Raise the first error if not one of these warehouses can be used."""
        if warehouses and all(name in self for name in warehouses):
            raise next(iter([*self.failed.values(), *self.hidden.values()]))

    def note(self) -> str | None:
        """Return the sentence about warehouses that the identity may not use; None if there are none."""
        if not self.hidden:
            return None
        several = len(self.hidden) > 1
        names = f"warehouse{'s' if several else ''} {', '.join(self.hidden)}"
        return f"left out, since this identity may not use {'them' if several else 'it'}: {names}"

    def error(self) -> LakewrightSparkError | None:
        """Return the error that a command ends with after its work in the other warehouses."""
        if not self.failed:
            return None
        return type(next(iter(self.failed.values())))("; ".join(str(error) for error in self.failed.values()))
