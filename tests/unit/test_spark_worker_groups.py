"""Tests of Spark run in one worker, with the tests of the same file that share a fixture with them."""

from __future__ import annotations

import pytest


def expect_spark_group(request: pytest.FixtureRequest) -> None:
    suffix = "@spark" if request.config.getoption("loadgroup", default=False) else ""
    assert request.node.nodeid == f"tests/unit/{request.path.name}::{request.function.__name__}{suffix}"


@pytest.fixture(scope="module")
def shared_list() -> list[str]:
    return []


@pytest.mark.spark
def test_spark_tests_are_grouped(request: pytest.FixtureRequest, shared_list: list[str]) -> None:
    expect_spark_group(request)


def test_tests_with_fixtures_of_spark_tests_join_them(request: pytest.FixtureRequest, shared_list: list[str]) -> None:
    expect_spark_group(request)
