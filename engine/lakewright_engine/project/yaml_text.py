"""Read and write YAML as the Pulumi CLI does: `on`, `yes` and dates are text, and a mapping has each key once.

PyYAML alone follows YAML 1.1, and keeps the last value of a repeated key. `lakewright` has a loader of its own: it must
read a spec where no engine is, and the engine stands alone.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import yaml


class _RepeatedKeyCheck:
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
        cast("Any", super()).flatten_mapping(node)


_DROPPED = {"tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp"}
_RESOLVERS = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _DROPPED]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _make_loader(base: Any) -> Any:
    """Return a safe loader with the booleans of YAML 1.2, without dates and without repeated keys."""
    loader: Any = type("_PulumiYamlLoader", (_RepeatedKeyCheck, base), {"yaml_implicit_resolvers": {**_RESOLVERS}})
    loader.add_implicit_resolver(
        "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
    )
    return loader


_LOADER = _make_loader(yaml.SafeLoader)
_FAST_LOADER = _make_loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader))
"""A loader with libyaml where PyYAML has it: ten times faster, but it explains mistakes less well."""


def load_yaml(text: str) -> Any:
    """Return the document in a text. Raise yaml.YAMLError if it is invalid, or if a mapping has a key twice."""
    try:
        return yaml.load(text, Loader=_FAST_LOADER)  # noqa: S506 - derived from SafeLoader
    except yaml.YAMLError:
        return yaml.load(text, Loader=_LOADER)  # noqa: S506 - derived from SafeLoader


def explain_yaml_error(file: Path, error: Exception) -> str:
    """Return why a file cannot be read, with file, line and column of the places that the parser names."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return f"{file} cannot be read: {error}"
    context = error.context or ""
    if context and error.context_mark is not None:
        context += f" in {_format_place(file, error.context_mark)}"
    reason = ", ".join(part for part in (context, error.problem) if part)
    return f"{_format_place(file, error.problem_mark)}: expected YAML: {reason}"


def _format_place(file: Path, mark: yaml.Mark) -> str:
    return f"{file}:{mark.line + 1}:{mark.column + 1}"


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
