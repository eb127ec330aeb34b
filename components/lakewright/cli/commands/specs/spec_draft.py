"""The spec that `lakewright new` writes: asked for value by value, and checked after each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, cast

import yaml
from lakewright_engine.project.yaml_text import GoSafeDumper

from lakewright.cli.errors import UsageError
from lakewright.cli.questions import ask
from lakewright.spec import SpecError, parse_spec
from lakewright.storage.backend import Question
from lakewright.storage.registry import BACKENDS, find_backend

_COMMAND = "lakewright new"
_UNIT_SIZE = {"cpu": "2", "memory": "8Gi"}
_PRESETS = ("texera", "none")


class SpecDraft:
    """A spec whose values are set one after another."""

    def __init__(self, tenant: str) -> None:
        """Begin the spec of a tenant."""
        self.spec: dict[str, Any] = {"version": 1, "environment": "", "name": tenant, "owner": ""}
        self._open: dict[str, str] = {}
        self._tenant = tenant

    def ask(self, path: str, option_value: str | None, question: str, default: str | None = None) -> str:
        """Set the value at a dotted path to an option's value, the user's input or a default.

        Invalid input is asked for again. Values of options are checked together, by `check`.

        Raises:
            UsageError: There is no value.
        """
        value = ask(option_value, question, default, command=_COMMAND, find_problem=self._make_check(path))
        self.set(path, value)
        return value

    def set(self, path: str, value: Any) -> None:
        """Set the value at a dotted path; a number is a place in a list, which grows by one."""
        _set_value(self.spec, path, value)

    def refuse_unused(self, options: Mapping[str, str | None]) -> None:
        """Check that the storage's backend uses the options.

        Args:
            options: Values of options, by the option that a question names.

        Raises:
            UsageError: Only other backends use some of them.
        """
        backend = self.spec["storage"]["main"]["backend"]
        used_options = {name: {question.option for question in model.questions} for name, model in BACKENDS.items()}
        accepted = used_options.get(backend, options)
        if unused := [option for option, value in options.items() if value and option not in accepted]:
            flags = ", ".join(f"--{option.replace('_', '-')}" for option in unused)
            backends = " or ".join(f"`--backend {name}`" for name, names in used_options.items() if names & {*unused})
            raise UsageError(f"{flags}: `--backend {backend}` does not use them; pass {backends}, or leave them out")

    def ask_backend(self, options: Mapping[str, str | None]) -> list[Question]:
        """Ask the questions of the storage's backend, and return the questions without a value.

        Args:
            options: Values of options, by the option that a question names.
        """
        open_questions: list[Question] = []
        backend = find_backend(self.spec["storage"]["main"])
        for question in backend.questions if backend else ():
            path = f"storage.main.{question.path}"
            option_value = options.get(question.option)
            if option_value or question.until_known is None:
                self.ask(path, option_value, question.text, question.default)
            elif reply := ask(None, question.text, "", command=_COMMAND):
                self.set(path, reply)
            else:
                self._open[path] = question.until_known
                open_questions.append(question)
        return open_questions

    def ask_namespaces(self, preset: str | None, names: Sequence[str] | None) -> None:
        """Ask for the namespaces of the warehouse: a preset, or names with commas between them."""
        if names:
            self.set("warehouses.0.namespaces", list(names))
            return
        path = "warehouses.0.namespaces"
        reply = ask(
            preset,
            "namespaces (texera, none, or names with commas between them)",
            "none",
            command=_COMMAND,
            find_problem=self._make_check(path, _read_namespaces),
        )
        if namespaces := _read_namespaces(reply):
            self.set(path, namespaces)

    def ask_computing_unit(self, runtime: str | None, warehouse: str) -> None:
        """Ask for the runtime of a computing unit that uses the warehouse."""
        kinds = ("spark", "texera", "none")
        unit_runtime = ask(
            runtime,
            f"computing unit ({', '.join(kinds)})",
            "none",
            command=_COMMAND,
            find_problem=lambda reply: "" if reply in kinds else f"{reply}: expected one of {', '.join(kinds)}",
        )
        if unit_runtime != "none":
            unit = {"name": unit_runtime, "runtime": unit_runtime, "size": dict(_UNIT_SIZE), "warehouse": warehouse}
            self.spec["computing_units"] = [unit]

    def check(self) -> None:
        """Check the whole spec. Raises SpecError with all problems."""
        parse_spec(self._complete(), f"the spec of {self._tenant}")

    def _make_check(self, path: str, read: Callable[[str], Any] = str) -> Callable[[str], str]:
        """Return a function that returns the problems of a value at its path, a line each; empty if it has none."""

        def describe_problems(reply: str) -> str:
            spec = self._complete()
            if (value := read(reply)) is None:
                return ""
            _set_value(spec, path, value)
            try:
                parse_spec(spec, f"the spec of {self._tenant}")
            except SpecError as error:
                return "\n".join(
                    str(problem) for problem in error.problems if f"{problem.path}.".startswith(f"{path}.")
                )
            return ""

        return describe_problems

    def _complete(self) -> dict[str, Any]:
        """Return the spec with values for questions that have none yet."""
        spec = deepcopy(self.spec)
        for path, value in self._open.items():
            _set_value(spec, path, value)
        return spec


def _read_namespaces(reply: str) -> dict[str, str] | list[str] | None:
    if reply == "none":
        return None
    if reply in _PRESETS:
        return {"preset": reply}
    return [name.strip() for name in reply.split(",")]


def _set_value(document: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at a dotted path; a number is a place in a list, which grows by one."""
    *sections, key = path.split(".")
    container: Any = document
    for section, following in zip(sections, path.split(".")[1:], strict=True):
        empty: Any = [] if following.isdigit() else {}
        if isinstance(container, list):
            items = cast(list[Any], container)
            if len(items) <= int(section):
                items.append(empty)
            container = items[int(section)]
        else:
            container = container.setdefault(section, empty)
    container[key] = value


def format_spec(spec: dict[str, Any]) -> str:
    """Return the spec as YAML, with a section per key and one line per entry."""
    lines: list[str] = []
    for section, value in spec.items():
        match value:
            case dict():
                entries = cast(dict[str, Any], value).items()
                lines += ["", f"{section}:", *(f"  {name}: {_flow(item)}" for name, item in entries)]
            case list():
                lines += ["", f"{section}:", *(f"  - {_flow(item)}" for item in cast(list[Any], value))]
            case _:
                lines.append(f"{section}: {_flow(value)}")
    return "".join(f"    {line}\n" if line else "\n" for line in lines)


def _flow(value: Any) -> str:
    text = yaml.dump(
        value, Dumper=GoSafeDumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10_000
    )
    return text.removesuffix("...\n").rstrip("\n")
