"""Resources of packages without lists: each object is read by its provider, as in a refresh."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lakewright.drift.model import Finding
from lakewright.drift.objects.provider_reads import compare_by_providers, is_compared
from lakewright.drift.session import ScanSession, StackResource


class OtherTypesScanner:
    """Compares objects of any package with states."""

    def scan(self, resources: Sequence[StackResource], session: ScanSession) -> Iterable[Finding]:
        """Return the differences that `preview --refresh` of each stack finds."""
        return compare_by_providers([*filter(is_compared, resources)], session)
