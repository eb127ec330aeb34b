"""A stack's settings in Pulumi.<stack>.yaml: configuration values, encrypted if secret, and the passphrase's salt."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from lakewright_engine.model.errors import ProjectError, UnsupportedFeatureError
from lakewright_engine.project import yaml_edit
from lakewright_engine.project.yaml_text import explain_yaml_error, load_yaml
from lakewright_engine.state.secrets import PassphraseManager, refuse_other_providers
from lakewright_engine.storage import files

SEGMENT = re.compile(r"""\.?([^.\[\]"]+)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]""")


def full_key(key: str, project: str) -> str:
    """Return a key as `namespace:name`.

    The default namespace is the project; `namespace:config:name` is an old form.
    """
    namespace, colon, name = key.partition(":")
    if not colon:
        return f"{project}:{key}"
    return f"{namespace}:{name.removeprefix('config:')}"


@dataclass
class StackConfig:
    """Settings that are changed in memory and written by `save`."""

    file: Path
    project: str
    stack: str
    text: str

    @classmethod
    def load(cls, file: Path, project: str, stack: str) -> StackConfig:
        """Read a file, which may be missing. Raise ProjectError if it cannot be read."""
        try:
            text = file.read_text(encoding="utf-8") if file.is_file() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise ProjectError(f"{file} cannot be read: {error}") from error
        config = cls(file, project, stack, text)
        config._check()
        return config

    def _check(self) -> None:
        try:
            body: Any = load_yaml(self.text)
        except yaml.YAMLError as error:
            raise ProjectError(explain_yaml_error(self.file, error)) from error
        values: Any = cast("dict[str, Any]", body).get("config") if isinstance(body, dict) else None
        places: list[tuple[str, Any]] = [("", body), ("config", values)]
        for section, content in places:
            if content is not None and not isinstance(content, dict):
                section_name = f"'{section}' of {self.file}" if section else str(self.file)
                raise ProjectError(f"{section_name} must be a mapping, found {type(content).__name__}")

    @property
    def body(self) -> dict[str, Any]:
        """The parsed file."""
        return load_yaml(self.text) or {}

    @property
    def values(self) -> dict[str, Any]:
        """Values by full key as in the file: a secret is `{"secure": ciphertext}`."""
        written: dict[str, Any] = self.body.get("config") or {}
        return {full_key(str(key), self.project): value for key, value in written.items()}

    @property
    def salt(self) -> str:
        """The salt of the passphrase; empty if there is none."""
        return str(self.body.get("encryptionsalt") or "")

    def refuse_unsupported(self) -> None:
        """Raise UnsupportedFeatureError for settings that the embedded engine does not support."""
        body = self.body
        refuse_other_providers(str(body.get("secretsprovider") or ""), self.stack)
        if body.get("encryptedkey"):
            refuse_other_providers("a cloud key", self.stack)
        if body.get("environment"):
            message = f"{self.file}: 'environment' (Pulumi ESC) needs Pulumi Cloud; use --engine pulumi"
            raise UnsupportedFeatureError(message)

    def is_secret(self, key: str) -> bool:
        """Return whether the value is or contains a secret."""
        return _holds_secret(self.values[key])

    def plaintext(self, key: str) -> str:
        """Return the value for the program: text unchanged, anything else as JSON text, secrets decrypted."""
        return to_text(self._decrypt(self.values[key]))

    def list_secrets(self, key: str) -> list[str]:
        """Return the decrypted secrets in the value."""
        return [self._manager().decrypt(ciphertext) for ciphertext in _list_ciphertexts(self.values[key])]

    def mask_secrets(self, key: str) -> str:
        """Return the value with `[secret]` in place of secrets."""
        return to_text(_mask(self.values[key]))

    def get(self, key: str, *, path: bool = False) -> str | None:
        """Return the decrypted value, with `path` that of a place inside a value (`tree.leaf[0]`).

        None if there is none.
        """
        value = self._get_value(key, path=path)
        return None if value is None else to_text(self._decrypt(value))

    def holds_secret(self, key: str, *, path: bool = False) -> bool:
        """Return whether the value that `get` returns is or contains a secret."""
        return _holds_secret(self._get_value(key, path=path))

    def _get_value(self, key: str, *, path: bool) -> Any:
        name, steps = self._place(key, path=path)
        value: Any = self.values
        for step in (name, *steps):
            if not _has_step(value, step):
                return None
            value = value[step]
        return value

    def set(self, key: str, value: str, *, secret: bool = False, path: bool = False) -> None:
        """Set a value, encrypted if `secret`.

        Raise ProjectError if `path` leads through a value that is not a container.
        """
        name, steps = self._place(key, path=path)
        stored: Any = {"secure": self._manager().encrypt(value)} if secret else _parse_scalar(value) if path else value
        self._store(name, _set_value(self.values.get(name), steps, stored, key) if steps else stored)

    def set_value(self, key: str, value: Any) -> None:
        """Set a structured value without secrets."""
        self._store(full_key(key, self.project), value)

    def remove(self, key: str, *, path: bool = False) -> None:
        """Remove a value, with `path` a place inside a value, if it exists."""
        name, steps = self._place(key, path=path)
        if name not in self.values:
            return
        if not steps:
            self.text = yaml_edit.remove_entry(self.text, ["config", self.find_written_key(name)])
            return
        holder: Any = self.values[name]
        root = holder
        for step in steps[:-1]:
            if not _has_step(holder, step):
                return
            holder = holder[step]
        if _has_step(holder, steps[-1]):
            del holder[steps[-1]]
            self._store(name, root)

    def find_written_key(self, key: str) -> str:
        """Return a full key as the file has it, such as `spec` for `project:spec`; the full key if it has none."""
        written: dict[str, Any] = self.body.get("config") or {}
        return next((str(name) for name in written if full_key(str(name), self.project) == key), key)

    def set_salt(self, salt: str) -> None:
        """Set the salt of the passphrase."""
        body = self.body
        if body.get("encryptionsalt") or not body:
            self.text = yaml_edit.set_entry(self.text, ["encryptionsalt"], salt)
        else:
            self.text = f"encryptionsalt: {salt}\n{self.text}"

    def save(self) -> None:
        """Replace the file atomically. Raise ProjectError if it cannot be written."""
        file = self.file.resolve()  # the file that a link names
        files.remove_leftovers(file.parent, re.escape(file.name))
        try:
            files.write(file, self.text.encode())
        except OSError as error:
            message = f"{self.file} could not be saved: {error.strerror or error}. It is unchanged."
            raise ProjectError(message) from error

    def _store(self, name: str, value: Any) -> None:
        self.text = yaml_edit.set_entry(self.text, ["config", self.find_written_key(name)], value)

    def _place(self, key: str, *, path: bool) -> tuple[str, list[str | int]]:
        if not path:
            return full_key(key, self.project), []
        steps = _steps(key)
        return full_key(str(steps[0]), self.project), steps[1:]

    def _manager(self) -> PassphraseManager:
        if self.salt:
            return PassphraseManager.from_salt(self.salt, self.stack)
        manager = PassphraseManager.create(self.stack)
        self.set_salt(manager.salt)
        return manager

    def _decrypt(self, value: Any) -> Any:
        if _is_secure(value):
            return self._manager().decrypt(value["secure"])
        if isinstance(value, dict):
            return {key: self._decrypt(item) for key, item in cast("dict[str, Any]", value).items()}
        if isinstance(value, list):
            return [self._decrypt(item) for item in cast("list[Any]", value)]
        return value


def to_text(value: Any) -> str:
    """Return a configuration value as text: strings unchanged, None as empty text, everything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False, default=str)


def _is_secure(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and list(cast("dict[str, Any]", value)) == ["secure"]
        and isinstance(value["secure"], str)
    )


def _holds_secret(value: Any) -> bool:
    if isinstance(value, dict):
        return _is_secure(value) or any(_holds_secret(item) for item in cast("dict[str, Any]", value).values())
    return isinstance(value, list) and any(_holds_secret(item) for item in cast("list[Any]", value))


def _list_ciphertexts(value: Any) -> list[str]:
    if _is_secure(value):
        return [value["secure"]]
    items: list[Any] = []
    if isinstance(value, dict):
        items = list(cast("dict[str, Any]", value).values())
    elif isinstance(value, list):
        items = cast("list[Any]", value)
    return [ciphertext for item in items for ciphertext in _list_ciphertexts(item)]


def _mask(value: Any) -> Any:
    if _is_secure(value):
        return "[secret]"
    if isinstance(value, dict):
        return {key: _mask(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_mask(item) for item in cast("list[Any]", value)]
    return value


def _parse_scalar(value: str) -> Any:
    """Return text inside a structured value as the CLI does: as a boolean or integer if it is one, else unchanged."""
    if value in ("true", "false"):
        return value == "true"
    return int(value) if re.fullmatch(r"-?[1-9]\d*|0", value) else value


def _steps(path: str) -> list[str | int]:
    """Split a path: `tree["a.b"].leaf[0]` -> tree, a.b, leaf, 0."""
    steps: list[str | int] = []
    position = 0
    while position < len(path):
        match = SEGMENT.match(path, position)
        if match is None:
            raise ProjectError(f"'{path}' is not a path: cannot parse '{path[position:]}'")
        name, index, quoted = match.groups()
        if index is not None:
            steps.append(int(index))
        else:
            steps.append(name if name is not None else re.sub(r"\\(.)", r"\1", quoted))
        position = match.end()
    if not steps or isinstance(steps[0], int):
        raise ProjectError(f"'{path}' is not a path: it must begin with the name of a key")
    return steps


def _has_step(value: Any, step: str | int) -> bool:
    if isinstance(step, int):
        return isinstance(value, list) and step < len(cast("list[Any]", value))
    return isinstance(value, dict) and step in value and not _is_secure(value)


def _set_value(value: Any, steps: list[str | int], new: Any, path: str) -> Any:
    """Return `value` with `new` at the end of `steps`. Missing containers are created."""
    if not steps:
        return new
    step = steps[0]
    if isinstance(step, int):
        container: Any = [] if value is None else value
        items = cast("list[Any]", container) if isinstance(container, list) else []
        if not isinstance(container, list) or step > len(items):
            raise ProjectError(f"'{path}' cannot be set: there is no list with {step} item(s) before it")
        inside = items[step] if step < len(items) else None
        return [*items[:step], _set_value(inside, steps[1:], new, path), *items[step + 1 :]]
    members: Any = {} if value is None else value
    if not isinstance(members, dict) or _is_secure(members):
        raise ProjectError(f"'{path}' cannot be set: '{step}' would be a key of a value that is not a mapping")
    mapping = cast("dict[str, Any]", members)
    return mapping | {step: _set_value(mapping.get(step), steps[1:], new, path)}
