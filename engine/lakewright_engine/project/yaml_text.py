"""Read and write YAML as the Pulumi CLI does: `on`, `yes` and dates are text, as in YAML 1.2, unlike in PyYAML.

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


_GO_VALUE = re.compile(
    r"""
    [yYnN]                                            # booleans of YAML 1.1 that PyYAML does not know
    | [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?  # decimal
    | [-+]?0[xX][0-9a-fA-F]+
    | [-+]?0[oO][-+]?[0-7]+ | [-+]?0[bB][-+]?[01]+
    | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt\ ].*)?       # dates and times, with short numbers
    """,
    re.VERBOSE | re.ASCII,
)
_BREAKS = re.compile("[\n\r\x85\u2028\u2029]")


def is_go_value(text: str) -> bool:
    """Return whether Go's YAML may read an unquoted text as a value of another type, while PyYAML reads text.

    The rules come from `resolve` in yaml.v2 and yaml.v3, which read forms of YAML 1.1 and 1.2. Underscores between
    digits do not count there.
    """
    return _GO_VALUE.fullmatch(text[:1] + text[1:].replace("_", "")) is not None


class GoSafeDumper(yaml.SafeDumper):
    """Writes YAML that Go's libraries, PyYAML and YAML 1.2 read as the same data: texts are quoted if one would not.

    Text with line breaks is quoted, too, which escapes them: Unicode line breaks would be read as spaces.
    """


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _BREAKS.search(text) or is_go_value(text) else None
    return cast("Any", dumper).represent_scalar("tag:yaml.org,2002:str", text, style=style)


GoSafeDumper.add_representer(str, _represent_text)
