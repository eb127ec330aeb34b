"""Warnings about specs that declare both a deletion and a protection from it."""

from __future__ import annotations

from lakewright.spec import TenantSpec
from lakewright.validation.problems import Problem


def find_contradictions(spec: TenantSpec) -> list[Problem]:
    """Return the protected warehouses, tables and views that `deletion: purge` covers. The protection applies."""
    parts = [
        *(
            ("warehouses", index, warehouse.protected, warehouse.deletion)
            for index, warehouse in enumerate(spec.warehouses)
        ),
        *(("tables", index, table.protected, spec.find_deletion(table)) for index, table in enumerate(spec.tables)),
        *(
            ("views", index, view.protected, spec.find_warehouse(view.path.warehouse).deletion)
            for index, view in enumerate(spec.views)
        ),
    ]
    return [
        Problem(
            f"{section}.{index}.protected",
            "`protected: true` overrides `deletion: purge`: `destroy`, and an `up` that removes it from the spec, are"
            " refused. To delete it, set `protected: false` and run `up` first",
        )
        for section, index, protected, deletion in parts
        if protected and deletion == "purge"
    ]
