"""A linter of IAM policies."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROLE = "arn:aws:iam::123456789012:role/lakewright/acme"
OF_CLUSTERS = re.compile(r"UNKNOWN_FEDERATION_SOURCE .*:oidc-provider/oidc[.]eks[.]|Unknown condition oidc[.]eks[.]")


@pytest.fixture(scope="session")
def lint_policy() -> Callable[[dict[str, Any]], list[str]]:
    """Return a function that returns Parliament's findings in a policy.

    Parliament needs `pkg_resources`, which setuptools no longer has, for two of its files. It knows neither trust
    policies, which have no Resource, nor OIDC providers of clusters.
    """
    places = ModuleType("pkg_resources")
    spec = find_spec("parliament")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent
    places.__dict__["resource_filename"] = lambda _package, name: str(folder / name)
    with pytest.MonkeyPatch.context() as monkeypatch, warnings.catch_warnings():
        monkeypatch.setitem(sys.modules, "pkg_resources", places)
        warnings.simplefilter("ignore", DeprecationWarning)
        from parliament import analyze_policy_string

    def findings(policy: dict[str, Any]) -> list[str]:
        statements = [
            statement if statement.keys() & {"Resource", "NotResource"} else {**statement, "Resource": ROLE}
            for statement in policy["Statement"]
        ]
        parliament_findings = analyze_policy_string(json.dumps({**policy, "Statement": statements})).findings
        return [text for finding in parliament_findings if not OF_CLUSTERS.search(text := str(finding))]

    return findings
