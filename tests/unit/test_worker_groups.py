"""Under pytest-xdist, a group of tests runs in one worker, with the group's name after the name of each test."""

from __future__ import annotations

import pytest


def expect_group(request: pytest.FixtureRequest, group: str) -> None:
    suffix = f"@{group}" if request.config.getoption("loadgroup", default=False) else ""
    assert request.node.nodeid == f"tests/unit/{request.path.name}::{request.function.__name__}{suffix}"


@pytest.mark.xdist_group("named")
def test_marked_tests_are_grouped(request: pytest.FixtureRequest) -> None:
    expect_group(request, "named")


@pytest.fixture(scope="module")
def shared_list() -> list[str]:
    return []


def test_tests_of_a_module_fixture_are_grouped(request: pytest.FixtureRequest, shared_list: list[str]) -> None:
    expect_group(request, "tests/unit/test_worker_groups.py")
