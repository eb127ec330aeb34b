"""Read YAML as the Pulumi CLI does: `on`, `yes` and dates are text, as in YAML 1.2, unlike in PyYAML.

`lakewright.spec` has a loader of its own: it must read a spec where no engine is, and the engine stands alone.
"""

import re
from typing import Any, cast

import yaml


class _PulumiYamlLoader(yaml.SafeLoader):
    """PyYAML's safe loader with the booleans of YAML 1.2 and without dates."""


_DROPPED = {"tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp"}
_PulumiYamlLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _DROPPED]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
cast(Any, _PulumiYamlLoader).add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)


_FastYamlLoader: Any = type(
    "_FastYamlLoader",
    (getattr(yaml, "CSafeLoader", yaml.SafeLoader),),
    {"yaml_implicit_resolvers": _PulumiYamlLoader.yaml_implicit_resolvers},
)
"""The same with libyaml where PyYAML has it: ten times faster, but its errors have no excerpt of the text."""


def load_many_yaml(text: str) -> Any:
    """Return the document in one of many texts, as `load_yaml` does. Raise yaml.YAMLError if it is invalid."""
    return yaml.load(text, Loader=_FastYamlLoader)  # noqa: S506 - derived from SafeLoader


def load_yaml(text: str) -> Any:
    """Return the document in a text. Raise yaml.YAMLError if it is invalid."""
    return yaml.load(text, Loader=_PulumiYamlLoader)  # noqa: S506 - derived from SafeLoader
