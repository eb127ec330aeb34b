"""YAML read as the Pulumi CLI reads it: `on`, `yes` and dates are text, and a mapping has each key once.

PyYAML alone follows YAML 1.1, and keeps the last value of a repeated key. `lakewright_engine` has its own loader: specs
are read without the engine, and the engine does not depend on this.
"""

import re
from typing import Any, cast

import yaml


class _UniqueKeys:
    """Part of a loader that refuses a repeated key of a mapping, by its text, as the Pulumi CLI does.

    A key that a merge (`<<`) brings may be set again: the mapping's own value overrides it.
    """

    def flatten_mapping(self, node: Any) -> None:
        """Refuse repeated keys before merges are resolved. A mapping that other mappings merge is resolved first."""
        if not hasattr(node, "has_unique_keys"):
            node.has_unique_keys = True
            first_marks: dict[str, Any] = {}
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    continue
                if mark := first_marks.get(key.value):
                    raise yaml.constructor.ConstructorError(
                        f"key {key.value!r} is set", mark, "and set again: remove or rename one of them", key.start_mark
                    )
                first_marks[key.value] = key.start_mark
        cast(Any, super()).flatten_mapping(node)


_DROPPED = {"tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp"}
_RESOLVERS = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _DROPPED]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _make_loader(base: Any) -> Any:
    """Return a safe loader with the booleans of YAML 1.2, without dates and without repeated keys."""
    loader: Any = type("_Yaml12Loader", (_UniqueKeys, base), {"yaml_implicit_resolvers": {**_RESOLVERS}})
    loader.add_implicit_resolver(
        "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
    )
    return loader


_LOADER = _make_loader(yaml.SafeLoader)
_FAST_LOADER = _make_loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader))
"""A loader with libyaml where PyYAML has it: ten times faster, but it explains mistakes less well."""


def load_yaml(text: str) -> Any:
    """Parse a YAML document. Raises yaml.YAMLError, also for a key that a mapping has twice."""
    try:
        return yaml.load(text, Loader=_FAST_LOADER)  # noqa: S506 - derived from SafeLoader
    except yaml.YAMLError:
        return yaml.load(text, Loader=_LOADER)  # noqa: S506 - derived from SafeLoader
