"""Addresses of execution results: Texera's `vfs:` URIs and their tables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from urllib.parse import urlsplit

from lakewright_spark.errors import BadAddressError


class ResultKind(Enum):
    """The last segment of an address; it picks the namespace."""

    RESULT = "result"
    STATE = "state"
    RUNTIME_STATISTICS = "runtimestatistics"
    CONSOLE_MESSAGES = "consolemessages"


# Texera's names (common/config/src/main/resources/storage.conf) and the variables by which a deployment changes them.
_NAMESPACES: Mapping[ResultKind, tuple[str, str]] = {
    ResultKind.RESULT: ("STORAGE_ICEBERG_TABLE_RESULT_NAMESPACE", "operator-port-result"),
    ResultKind.STATE: ("STORAGE_ICEBERG_TABLE_STATE_NAMESPACE", "operator-port-state"),
    ResultKind.RUNTIME_STATISTICS: (
        "STORAGE_ICEBERG_TABLE_RUNTIME_STATISTICS_NAMESPACE",
        "workflow-runtime-statistics",
    ),
    ResultKind.CONSOLE_MESSAGES: ("STORAGE_ICEBERG_TABLE_CONSOLE_MESSAGES_NAMESPACE", "operator-console-messages"),
}

_SEGMENT = re.compile(r"""[^/_?#%,"'`<>{}|\\^\[\]\s\x00-\x1f\x7f-\x9f]+""")
_PORT = re.compile(
    r"\(logicalOpId=([^,]+),layerName=([^,]+),portId=(\d+),isInternal=(true|false),isInput=(true|false)\)"
)
"""The text form from which Texera reads a port."""
_ADDRESS = re.compile(r"/(?:wh/(?P<warehouse>[^/]+)/)?wid/(?P<workflow>\d+)/eid/(?P<execution>\d+)/(?P<rest>.+)")
_SUFFIXES = {
    ResultKind.RESULT: re.compile(r"globalportid/[^/]+/result"),
    ResultKind.STATE: re.compile(r"globalportid/[^/]+/state"),
    ResultKind.RUNTIME_STATISTICS: re.compile(r"runtimestatistics"),
    ResultKind.CONSOLE_MESSAGES: re.compile(r"opid/[^/]+/consolemessages"),
}


def _segment(label: str, text: str) -> str:
    # An underscore would be read as a slash when a table's name is turned back into a path. A comma ends a part of a
    # port, and Java's URI refuses the other characters.
    if not _SEGMENT.fullmatch(text):
        raise BadAddressError(
            f"{label}: expected text without slash, underscore, comma, quote, bracket, blank, ?, #, % or other "
            f"characters that no URI has, found {text!r}"
        )
    return text


@dataclass(frozen=True)
class Port:
    """An operator's port; its text form has no underscore, by Texera's design."""

    operator: str
    port: int = 0
    layer: str = "main"
    internal: bool = False
    input: bool = False

    def __str__(self) -> str:
        """Return the text form."""
        operator, layer = _segment("operator id", self.operator), _segment("layer", self.layer)
        flags = f"isInternal={str(self.internal).lower()},isInput={str(self.input).lower()}"
        return f"(logicalOpId={operator},layerName={layer},portId={self.port},{flags})"


@dataclass(frozen=True)
class ResultUri:
    """One result table of one execution."""

    kind: ResultKind
    path: str
    """The part that begins with `wid/`."""
    warehouse: str | None = None
    """None in a deployment with a single warehouse."""

    def __str__(self) -> str:
        """Return the text form."""
        return f"vfs:///{f'wh/{self.warehouse}/' if self.warehouse else ''}{self.path}"

    @property
    def execution(self) -> Execution:
        """The execution that wrote the table."""
        _, workflow, _, execution, *_ = self.path.split("/")
        return Execution(int(workflow), int(execution), self.warehouse)

    @property
    def table(self) -> str:
        """The table's name; it may have parentheses, commas and `=`, so SQL needs backquotes."""
        return self.path.replace("/", "_")

    @classmethod
    def parse(cls, text: str) -> ResultUri:
        """Read an address. Raises BadAddressError for any other text."""
        parts = urlsplit(text)
        match = _ADDRESS.fullmatch(parts.path) if parts.scheme == "vfs" and not parts.netloc else None
        for kind, shape in _SUFFIXES.items():
            if match and shape.fullmatch(match["rest"]):
                path = f"wid/{match['workflow']}/eid/{match['execution']}/{match['rest']}"
                return cls(kind, path, match["warehouse"])
        kinds = "globalportid/PORT/result, globalportid/PORT/state, runtimestatistics or opid/OPERATOR/consolemessages"
        raise BadAddressError(f"expected vfs:///[wh/WAREHOUSE/]wid/N/eid/N/ and then {kinds}, found {text!r}")

    @classmethod
    def from_table_name(cls, table: str, warehouse: str | None = None) -> ResultUri | None:
        """Return the address of the table with this name; None if it is not a name of a result table."""
        try:
            return cls.parse(f"vfs:///{table.replace('_', '/')}").with_warehouse(warehouse)
        except BadAddressError:
            return None

    def check_readable(self) -> None:
        """Raise BadAddressError for an address that Texera cannot read, which older releases may have written."""
        *_, holder, _ = ["", *self.path.split("/")]
        if self.kind in {ResultKind.RESULT, ResultKind.STATE}:
            if (match := _PORT.fullmatch(holder)) is None:
                raise BadAddressError(
                    f"port {holder!r}: expected (logicalOpId=ID,layerName=NAME,portId=N,isInternal=true|false,"
                    "isInput=true|false), with no comma in ID and NAME"
                )
            _segment("operator id", match[1])
            _segment("layer", match[2])
        elif self.kind is ResultKind.CONSOLE_MESSAGES:
            _segment("operator id", holder)

    def with_warehouse(self, warehouse: str | None) -> ResultUri:
        """Return this address with another warehouse."""
        return replace(self, warehouse=warehouse)


@dataclass(frozen=True)
class Execution:
    """A run of a workflow, and the addresses of the tables that it writes."""

    workflow: int
    execution: int
    warehouse: str | None = None

    def result(self, port: Port) -> ResultUri:
        """Return the address of a port's result."""
        return self._uri(ResultKind.RESULT, f"globalportid/{port}/result")

    def state(self, port: Port) -> ResultUri:
        """Return the address of a port's state."""
        return self._uri(ResultKind.STATE, f"globalportid/{port}/state")

    def runtime_statistics(self) -> ResultUri:
        """Return the address of the runtime statistics."""
        return self._uri(ResultKind.RUNTIME_STATISTICS, "runtimestatistics")

    def console_messages(self, operator: str) -> ResultUri:
        """Return the address of an operator's console messages."""
        return self._uri(ResultKind.CONSOLE_MESSAGES, f"opid/{_segment('operator id', operator)}/consolemessages")

    def _uri(self, kind: ResultKind, suffix: str) -> ResultUri:
        if self.warehouse is not None and ("/" in self.warehouse or not self.warehouse):
            raise BadAddressError(f"warehouse: expected a name without slash, found {self.warehouse!r}")
        return ResultUri(kind, f"wid/{self.workflow}/eid/{self.execution}/{suffix}", self.warehouse)


@dataclass(frozen=True)
class ResultNamespaces:
    """The namespace of each kind: Texera's names by default."""

    names: Mapping[ResultKind, str] = field(
        default_factory=lambda: {kind: name for kind, (_, name) in _NAMESPACES.items()}
    )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> ResultNamespaces:
        """Return the namespaces that Texera uses: each from its variable, or else its default name."""
        return cls({kind: environment.get(variable) or name for kind, (variable, name) in _NAMESPACES.items()})

    def look_up(self, uri: ResultUri) -> str:
        """Return the namespace of an address."""
        return self.names[uri.kind]
