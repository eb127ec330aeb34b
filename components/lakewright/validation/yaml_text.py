"""YAML read as the Pulumi CLI reads it: `on`, `yes` and dates are text, as in YAML 1.2, not PyYAML's 1.1.

`lakewright_engine` has its own loader: specs are read without the engine, and the engine does not depend on this.
"""

import re
from typing import Any, cast

import yaml


class _Yaml12Loader(yaml.SafeLoader):
    """PyYAML's safe loader with the booleans of YAML 1.2, and without dates."""


_DROPPED = {"tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp"}
_Yaml12Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _DROPPED]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
cast(Any, _Yaml12Loader).add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)


def load_yaml(text: str) -> Any:
    """Parse a YAML document. Raises yaml.YAMLError."""
    return yaml.load(text, Loader=_Yaml12Loader)  # noqa: S506 - derived from SafeLoader
