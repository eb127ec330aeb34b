"""The dashboard of Grafana for the gauges of a drift check. It is a file of this package."""

from __future__ import annotations

from importlib.resources import files


def read_dashboard() -> str:
    """Return the dashboard as JSON, which Grafana imports. It asks for a data source of type Prometheus."""
    return (files("lakewright.ci.publishing") / "grafana_dashboard.json").read_text("utf-8")
