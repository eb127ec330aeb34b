"""YAML read as the Pulumi CLI reads it: `on`, `yes` and dates are text, as in YAML 1.2, not PyYAML's 1.1.

`lakewright.spec` has a loader of its own: it must read a spec where no engine is, and the engine stands alone.
"""

import re
from typing import Any, cast

import yaml


class _PulumiYamlLoader(yaml.SafeLoader):
    """PyYAML's safe loader with YAML 1.2's idea of what is a boolean, and without dates."""


_DROPPED = {"tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp"}
_PulumiYamlLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _DROPPED]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
cast(Any, _PulumiYamlLoader).add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)


def load_yaml(text: str) -> Any:
    """The document in a text; raises yaml.YAMLError."""
    return yaml.load(text, Loader=_PulumiYamlLoader)  # noqa: S506 - derived from SafeLoader
