"""Probes run at the same time where they are independent, and report as if they had not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from lakewright.client_access.check import (
    Attempt,
    IdentityUnavailableError,
    ProbeFailedError,
    VerifyError,
    expect_allowed,
)
from lakewright.verify.registry import IdentityProbe, Probe, TenantProbe, Turn
from lakewright.verify.scheduling import ProbeRun, execute_all
from lakewright.verify.session.once_property import OnceProperty

WITHIN = 20
"""Seconds after which a probe that waits for another one fails its test."""


def a_probe(name: str, turn: Turn = Turn.TOGETHER) -> Probe:
    return IdentityProbe(name, lambda _session: (), turn)


def a_run(probe: Probe, action: Callable[[], object]) -> ProbeRun:
    def results() -> Iterator[Attempt]:
        yield expect_allowed(f"start {probe.name}", "allowed", "")
        action()
        yield expect_allowed(f"end {probe.name}", "allowed", "")

    return ProbeRun(probe, results, (VerifyError,))


def titles(run: ProbeRun) -> list[str]:
    return [result.attempt for result in run.results if isinstance(result, Attempt)]


def test_independent_probes_run_at_the_same_time() -> None:
    barrier = threading.Barrier(3)
    runs = [a_run(a_probe(name), lambda: barrier.wait(WITHIN)) for name in "abc"]

    execute_all(runs)

    assert [titles(run) for run in runs] == [["start a", "end a"], ["start b", "end b"], ["start c", "end c"]]


def test_number_of_probes_at_a_time_is_limited() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def count() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        barrier.wait(WITHIN)
        with lock:
            running -= 1

    barrier = threading.Barrier(2)
    execute_all([a_run(a_probe(str(number)), count) for number in range(10)], parallel=2)

    assert most == 2


def test_first_probes_end_before_others_of_identities_start() -> None:
    ended: list[str] = []
    first = [a_run(a_probe("identity", Turn.FIRST), lambda: ended.append("identity")) for _ in range(3)]
    later_probes = [a_run(a_probe("table"), lambda: ended.append("table")) for _ in range(3)]

    execute_all([*later_probes, *first])

    assert ended == ["identity"] * 3 + ["table"] * 3


def test_tenant_probes_do_not_wait_for_identities() -> None:
    ended = threading.Event()
    tenant = a_run(TenantProbe("roles", lambda _session: ()), ended.set)
    identity = a_run(a_probe("identity", Turn.FIRST), lambda: ended.wait(WITHIN))

    execute_all([identity, tenant])

    assert ended.is_set()
    assert titles(identity) == ["start identity", "end identity"]


def test_probes_that_run_one_by_one_never_meet() -> None:
    running = threading.Lock()

    def require_alone() -> None:
        assert running.acquire(blocking=False)
        running.release()

    probe = a_probe("bucket-policy", Turn.ONE_BY_ONE)
    runs = [a_run(probe, require_alone) for _ in range(20)]

    execute_all(runs)

    assert all(len(run.results) == 2 for run in runs)


def raise_error(error: Exception) -> None:
    raise error


def test_failed_probe_hides_no_other_one() -> None:
    failing = a_run(a_probe("a"), lambda: raise_error(ProbeFailedError("no table")))
    whole = a_run(a_probe("b"), lambda: None)

    execute_all([failing, whole])

    assert (titles(failing), str(failing.error)) == (["start a"], "no table")
    assert (len(whole.results), whole.error) == (2, None)


def test_defect_of_the_program_ends_the_run() -> None:
    runs = [a_run(a_probe(name), lambda: raise_error(ZeroDivisionError())) for name in "ab"]

    with pytest.raises(ZeroDivisionError):
        execute_all(runs)


class Token:
    """Counts the requests for a token."""

    def __init__(self, error: Exception | None = None) -> None:
        self.requests, self._error = 0, error

    @OnceProperty
    def value(self) -> str:
        """The token."""
        self.requests += 1
        if self._error:
            raise self._error
        return "secret"


def test_property_is_computed_once_for_all_threads() -> None:
    token = Token()

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _number: token.value, range(50))) == {"secret"}

    assert token.requests == 1
    assert Token().value == "secret"


def test_property_that_failed_is_not_computed_again() -> None:
    """A cluster that does not respond would make each probe wait."""
    token = Token(IdentityUnavailableError("no cluster"))

    for _ in range(3):
        with pytest.raises(IdentityUnavailableError, match="no cluster"):
            _ = token.value

    assert token.requests == 1
