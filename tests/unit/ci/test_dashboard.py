"""The dashboard of Grafana: each metric and label of its queries is published."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from lakewright.ci.documents import read_drift
from lakewright.ci.publishing.check import DriftCheck
from lakewright.ci.publishing.dashboard import read_dashboard
from lakewright.ci.publishing.gauges import make_gauges

REPORT = {"version": 1, "stacks": [{"stack": "acme", "tenant": "acme", "environment": "production"}]}
DASHBOARD: dict[str, Any] = json.loads(read_dashboard())


def list_queries() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from (variable["definition"] for variable in DASHBOARD["templating"]["list"] if "definition" in variable)


def list_published_labels() -> dict[str, set[str]]:
    """Return the labels of each published gauge, from a check that publishes all of them."""
    gauges = make_gauges(DriftCheck(read_drift(json.dumps(REPORT)), 1000.0), {})
    return {family.name: {label for sample in family.samples for label in sample.labels} for family in gauges.collect()}


def test_each_queried_metric_is_published() -> None:
    queried = {name for query in list_queries() for name in re.findall(r"\blakewright_\w+", query)}

    assert queried == {*list_published_labels()}


def test_each_filter_names_a_label_of_its_metric() -> None:
    labels = list_published_labels()
    filters = [match for query in list_queries() for match in re.findall(r"(lakewright_\w+)\{([^}]*)\}", query)]

    assert filters
    for metric, text in filters:
        assert {*re.findall(r"(\w+)[=!]", text)} <= labels[metric], metric


def test_groups_name_published_labels() -> None:
    every = set[str]().union(*list_published_labels().values())
    groups = {
        name for query in list_queries() for text in re.findall(r"by \(([^)]*)\)", query) for name in text.split(", ")
    }

    assert groups <= every


def test_panels_use_the_chosen_data_source_and_do_not_overlap() -> None:
    cells: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}
        grid = panel["gridPos"]
        area = {
            (x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])
        }
        assert not cells & area, panel["title"]
        assert grid["x"] + grid["w"] <= 24
        cells |= area
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
