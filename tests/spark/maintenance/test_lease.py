"""The lease on a warehouse: one holder, whatever the others do, and none for longer than it gives signs of life."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import LeaseHeldError, LeaseLostError
from lakewright_spark.pyiceberg_catalog import open_catalog
from lakewright_spark.scheduler.lease import LIFE, Lease, read

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class Runners:
    """Runners on the warehouse `results`, by their names."""

    def __init__(self, config: CatalogConfig) -> None:
        self.config, self.made = config, list[Lease]()

    def __call__(self, who: str) -> Lease:
        self.made.append(Lease(self.config, "results", open_catalog(self.config, "results"), who))
        return self.made[-1]


@pytest.fixture
def runner(catalog_config: CatalogConfig) -> Iterator[Runners]:
    runners = Runners(catalog_config)
    yield runners
    for one in runners.made:
        one.release(NOW)


def test_the_second_is_told_who_holds_it_and_until_when(runner: Runners) -> None:
    first, second = runner("host-a/7/aa"), runner("host-b/8/bb")
    first.take(NOW)
    with pytest.raises(
        LeaseHeldError, match=r"results is maintained by host-a/7/aa .* 2026-01-10 12:03:00 UTC"
    ) as held:
        second.take(NOW + SECOND)
    assert held.value.exit_code == 13
    first.renew(NOW + LIFE - SECOND)
    with pytest.raises(LeaseHeldError, match="12:05:59"):
        second.take(NOW + LIFE)
    first.release(NOW + LIFE)
    before = second.take(NOW + LIFE + SECOND)
    assert before is not None
    assert before.holder is None
    row = read(second.catalog)
    assert row is not None
    assert (row.warehouse, row.holder, row.expires_at) == ("results", "host-b/8/bb", NOW + 2 * LIFE + SECOND)


def test_who_was_silent_too_long_has_lost_it(runner: Runners) -> None:
    dead, heir = runner("dead"), runner("heir")
    dead.take(NOW)
    before = heir.take(NOW + LIFE)
    assert before is not None
    assert before.holder == "dead"
    with pytest.raises(LeaseLostError, match="taken by another"):
        dead.renew(NOW + LIFE + SECOND)
    dead.release(NOW + LIFE + SECOND)
    row = read(heir.catalog)
    assert row is not None
    assert row.holder == "heir", "what is another's is not given back"


def test_of_many_at_the_same_instant_one_has_it(runner: Runners) -> None:
    runners = [runner(f"runner-{number}") for number in range(4)]

    def taken(one: Lease) -> bool:
        try:
            one.take(NOW)
        except LeaseHeldError:
            return False
        return True

    with ThreadPoolExecutor(len(runners)) as pool:
        won = list(pool.map(taken, runners))
    assert won.count(True) == 1
    row = read(runners[0].catalog)
    assert row is not None
    assert row.holder == runners[won.index(True)].who


def test_a_commit_that_leaves_the_row_as_it_is_takes_nothing_away(runner: Runners) -> None:
    holder = runner("holder")
    holder.take(NOW)
    table = holder.catalog.load_table(("ops", "maintenance_lease"))
    table.overwrite(table.scan().to_arrow())
    holder.renew(NOW + SECOND)
    row = read(holder.catalog)
    assert row is not None
    assert (row.holder, row.heartbeat_at) == ("holder", NOW + SECOND)
