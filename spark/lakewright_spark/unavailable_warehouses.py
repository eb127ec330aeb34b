"""UnavailableWarehouses: warehouses that a command leaves out, since its identity may not use them or they fail."""

from __future__ import annotations

from collections.abc import Collection, Generator
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
    """Warehouses that a command could not use. A failing warehouse does not stop work in others."""

    named_warehouses: Collection[str] = ()
    """Warehouses that the user named. If the identity may not use one of them, it counts as failed."""
    hidden: dict[str, LakewrightSparkError] = field(default_factory=dict[str, LakewrightSparkError])
    """Refusals of the catalog by warehouse."""
    failed: dict[str, LakewrightSparkError] = field(default_factory=dict[str, LakewrightSparkError])
    """Failures by warehouse."""

    @contextmanager
    def record_failures(self, warehouse: str) -> Generator[None, None, None]:
        """Record the failure of a warehouse in the block. Errors about the identity itself are raised."""
        try:
            yield
        except (WarehouseHiddenError, AccessDeniedError) as error:
            (self.failed if warehouse in self.named_warehouses else self.hidden)[warehouse] = error
        except (CatalogUnreachableError, JobFailedError) as error:
            self.failed[warehouse] = error

    def __contains__(self, warehouse: object) -> bool:
        """Return whether the warehouse cannot be used."""
        return warehouse in self.hidden or warehouse in self.failed

    def check_any_left(self, warehouses: Collection[str]) -> None:
        """Raise the first error if none of these warehouses can be used."""
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
