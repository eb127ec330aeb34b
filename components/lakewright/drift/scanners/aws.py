"""Objects of AWS: lists per account for all stacks, then the provider's comparison of objects that may differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from lakewright_engine.model.resources import Properties

from lakewright.drift.model import Finding
from lakewright.drift.objects.aws import iam, kms, s3
from lakewright.drift.objects.aws.account import (
    SETTINGS,
    AccountUnreachableError,
    AwsAccountReader,
    account_key,
    open_account,
)
from lakewright.drift.objects.provider_reads import (
    compare_by_providers,
    is_compared,
    provider_settings,
    report_unchecked,
)
from lakewright.drift.session import ScanSession, StackResource

MayDiffer = Callable[[Sequence[StackResource], AwsAccountReader, ScanSession], list[StackResource]]

SERVICES: dict[str, MayDiffer] = {"iam": iam.may_differ, "kms": kms.may_differ, "s3": s3.may_differ}
"""Quick comparison by service. The provider compares objects of other services."""


class AwsScanner:
    """Compares objects of AWS accounts with states."""

    def scan(self, resources: Sequence[StackResource], session: ScanSession) -> Iterable[Finding]:
        """Return the differences that `preview --refresh` of each stack finds."""
        candidates: list[StackResource] = []
        accounts: dict[str, Properties] = {}
        groups: dict[tuple[str, str], list[StackResource]] = defaultdict(list)
        for resource in filter(is_compared, resources):
            service = resource.state.type.split(":")[1].partition("/")[0]
            settings = _read_settings(resource)
            if settings is None or service not in SERVICES:
                candidates.append(resource)
                continue
            key = account_key(settings)
            accounts.setdefault(key, settings)
            groups[key, service].append(resource)

        def find_candidates(key: str, service: str) -> list[StackResource] | AccountUnreachableError:
            try:
                return SERVICES[service](groups[key, service], open_account(accounts[key], session), session)
            except AccountUnreachableError as error:
                return error

        results = session.map(lambda group: find_candidates(*group), groups)
        for members, result in zip(groups.values(), results, strict=True):
            if isinstance(result, AccountUnreachableError):
                yield from report_unchecked(members, f"AWS: {result}")
            else:
                candidates += result
        yield from compare_by_providers(candidates, session)


def _read_settings(resource: StackResource) -> Properties | None:
    """Return the settings of a resource's provider; None if only the provider itself can follow them."""
    inputs = provider_settings(resource)
    if inputs is None:
        return None
    settings: Properties = {}
    for key, value in inputs.items():
        if not key.startswith("__") and value not in (None, ""):
            settings[key] = value
    return None if settings.keys() - SETTINGS else settings
