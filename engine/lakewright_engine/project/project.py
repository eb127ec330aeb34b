"""A Pulumi project: the settings in Pulumi.yaml, the configuration of its stacks, and the backend of its state."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml

from lakewright_engine.model.errors import ProjectError, ProjectNotFoundError, UnsupportedFeatureError
from lakewright_engine.project.stack_config import StackConfig, full_key, to_text
from lakewright_engine.project.yaml_text import explain_yaml_error, load_yaml
from lakewright_engine.state.backend import StateBackend
from lakewright_engine.state.backends import open_backend
from lakewright_engine.state.names import check_project_name, check_stack_name
from lakewright_engine.state.secrets import PassphraseManager

FILE_NAMES = ("Pulumi.yaml", "Pulumi.yml")
OWN_STATE = Path(".lakewright", "state")
"""Folder of the project for the state if no backend is chosen."""

_PULUMI_CLOUD = "https://api.pulumi.com"


@dataclass(frozen=True)
class Configuration:
    """The configuration of a program: text by full key (`namespace:name`); objects are JSON text."""

    values: dict[str, str] = field(default_factory=dict[str, str])
    secret_keys: list[str] = field(default_factory=list[str])
    secret_values: list[str] = field(default_factory=list[str])
    """The encrypted values of the stack's settings, decrypted; for an object the encrypted values in it.

    Displays mask them. Values in plain text, such as secret defaults of Pulumi.yaml, are left out, as by the CLI.
    """


@dataclass(frozen=True)
class PulumiProject:
    """A Python project. All paths are absolute."""

    file: Path
    name: str
    main: str = ""
    virtualenv: Path | None = None
    """`runtime.options.virtualenv`; None means the current interpreter."""
    stack_config_dir: Path = Path()
    backend_url: str = ""
    """`backend.url`; see `state_url` for the URL that is used."""
    defaults: dict[str, Any] = field(default_factory=dict[str, Any])
    """`config` of Pulumi.yaml: default values for all stacks, by full key."""
    secret_defaults: tuple[str, ...] = ()
    required_keys: tuple[str, ...] = ()
    """Keys in Pulumi.yaml without a default value."""

    @classmethod
    def load(cls, directory: Path | str = ".") -> PulumiProject:
        """Read the Pulumi.yaml of a folder or of the nearest folder above it.

        Raises:
            ProjectNotFoundError: There is no Pulumi.yaml.
            ProjectError: It cannot be read.
            UnsupportedFeatureError: The program is not written in Python.
        """
        start = Path(directory).resolve()
        if not start.is_dir():
            raise ProjectError(f"{directory} is not a directory")
        for folder in (start, *start.parents):
            for name in FILE_NAMES:
                if (folder / name).is_file():
                    return _read(folder / name)
        message = f"no Pulumi.yaml found in {start} or any folder above it; set the project's folder with -C DIR"
        raise ProjectNotFoundError(message)

    @property
    def root(self) -> Path:
        """The folder of Pulumi.yaml."""
        return self.file.parent

    @property
    def program(self) -> Path:
        """The program: a file or a folder with a `__main__.py`, from `main`, by default the project's folder."""
        return (self.root / self.main).resolve() if self.main else self.root

    def find_program(self) -> Path:
        """Return the program, which exists. Raise ProjectError if it does not."""
        file = self.program if self.main and self.program.suffix == ".py" else self.program / "__main__.py"
        if not file.is_file():
            message = (
                f"{self.file}: expected the program in {file}, which does not exist; write it, or name it as `main`"
            )
            raise ProjectError(message)
        return self.program

    @property
    def working_directory(self) -> Path:
        """The folder in which the program runs."""
        return self.program.parent if self.program.is_file() else self.program

    @property
    def python(self) -> Path | None:
        """The interpreter of `virtualenv`. Raise ProjectError if that folder has none."""
        if self.virtualenv is None:
            return None
        python = self.virtualenv / "bin" / "python"
        if not python.exists():
            message = (
                f"{self.file}: runtime.options.virtualenv is {self.virtualenv}, which has no bin/python; create the "
                "virtual environment first"
            )
            raise ProjectError(message)
        return python

    @property
    def state_url(self) -> str:
        """The URL of the backend.

        It is PULUMI_BACKEND_URL, else `backend.url`, else that of the last `pulumi login`, else the project's folder.
        """
        return os.environ.get("PULUMI_BACKEND_URL") or self.backend_url or _login_url() or self._own_state_url

    @property
    def has_own_state(self) -> bool:
        """Return whether the state is kept in the project's folder because no backend was chosen."""
        return self.state_url == self._own_state_url

    @property
    def _own_state_url(self) -> str:
        return f"file://{self.root / OWN_STATE}"

    def backend(self) -> StateBackend:
        """Return the backend of the project's state. Raise UnsupportedFeatureError if only the Pulumi CLI reads it."""
        return open_backend(self.state_url)

    def stack_file(self, stack: str) -> Path:
        """Return the file of a stack's settings. Raise StateError if the stack's name is invalid."""
        check_stack_name(stack)
        return self.stack_config_dir / f"Pulumi.{stack}.yaml"

    def stack_config(self, stack: str) -> StackConfig:
        """Return the settings of a stack; empty if it has no file."""
        return StackConfig.load(self.stack_file(stack), self.name, stack)

    def secrets(self, stack: str) -> PassphraseManager:
        """Return the stack's secrets manager.

        It comes from the settings, else from the state; else it is new and is saved in the settings.
        """
        config = self.stack_config(stack)
        config.refuse_unsupported()
        if config.salt:
            return PassphraseManager.from_salt(config.salt, stack)
        manager = self.backend().manager(self.name, stack) or PassphraseManager.create(stack)
        config.set_salt(manager.salt)
        config.save()
        return manager

    def find_default_path(self, key: str) -> tuple[str, ...]:
        """Return the path of a default in Pulumi.yaml by its full key, such as `config`, `spec`, `value`."""
        config: dict[str, Any] = read_yaml(self.file).get("config") or {}
        name = next(name for name in config if full_key(name, self.name) == key)
        described = cast("dict[str, Any]", config[name]) if isinstance(config[name], dict) else {}
        return ("config", name, *[field for field in ("value", "default") if field in described][:1])

    def configuration(self, stack: str) -> Configuration:
        """Return the configuration of a stack's program. The passphrase is needed only for secrets.

        Raises:
            ProjectError: A key in Pulumi.yaml has no value.
        """
        config = self.stack_config(stack)
        config.refuse_unsupported()
        values = {key: to_text(value) for key, value in self.defaults.items()}
        secret_keys = set(self.secret_defaults)
        secret_values: list[str] = []
        for key in config.values:
            values[key] = config.plaintext(key)
            if config.is_secret(key):
                secret_keys.add(key)
                secret_values += config.list_secrets(key)
        missing = [key for key in self.required_keys if key not in values]
        if missing:
            message = (
                f"stack '{stack}' is missing configuration value(s) {', '.join(missing)}, which {self.file} requires"
            )
            raise ProjectError(message)
        return Configuration(values, sorted(secret_keys & values.keys()), secret_values)


def _read(file: Path) -> PulumiProject:
    body = read_yaml(file)
    name = body.get("name")
    if not isinstance(name, str) or not name:
        raise ProjectError(f"{file}: 'name' is missing")
    check_project_name(name, file)
    runtime: Any = body.get("runtime")
    described = cast("dict[str, Any]", runtime) if isinstance(runtime, dict) else {"name": runtime}
    if described.get("name") != "python":
        message = f"{file}: runtime is {described.get('name')!r}; the embedded engine runs only 'python' programs"
        raise UnsupportedFeatureError(message)
    options = cast("dict[str, Any]", described.get("options") or {})
    virtualenv = options.get("virtualenv")
    config: Any = body.get("config")
    # `config` naming a folder is the older spelling of `stackConfigDir`.
    folder = body.get("stackConfigDir") or (config if isinstance(config, str) else "")
    backend = cast("dict[str, Any]", body.get("backend") or {})
    config_section = cast("dict[str, Any]", config) if isinstance(config, dict) else {}
    defaults, secret, required = _read_defaults(config_section, name)
    return PulumiProject(
        file=file,
        name=name,
        main=body.get("main") or "",
        virtualenv=(file.parent / virtualenv).absolute() if virtualenv else None,
        # Not resolved: a linked folder of stacks belongs to the project that links to it.
        stack_config_dir=file.parent / folder,
        backend_url=backend.get("url") or "",
        defaults=defaults,
        secret_defaults=secret,
        required_keys=required,
    )


def _read_defaults(config: dict[str, Any], project: str) -> tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]:
    """Return default values, keys of secret defaults, and keys without a default value."""
    defaults: dict[str, Any] = {}
    secret: list[str] = []
    required: list[str] = []
    for name, declaration in config.items():
        key = full_key(name, project)
        described = cast("dict[str, Any]", declaration) if isinstance(declaration, dict) else {"value": declaration}
        value = described.get("value", described.get("default"))
        if value is not None:
            defaults[key] = value
        elif "type" in described:
            required.append(key)
        if described.get("secret"):
            secret.append(key)
    return defaults, tuple(secret), tuple(required)


def read_yaml(file: Path) -> dict[str, Any]:
    """Read a YAML file that holds a mapping. Raise ProjectError, with the file and place, if it does not."""
    try:
        body: Any = load_yaml(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ProjectError(explain_yaml_error(file, error)) from error
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise ProjectError(f"{file}: expected a mapping, found {type(body).__name__}")
    return cast("dict[str, Any]", body)


def _login_url() -> str:
    """Return the backend of the last `pulumi login`.

    An access token without a login means Pulumi Cloud, as for the CLI.
    """
    home = os.environ.get("PULUMI_CREDENTIALS_PATH") or os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi"
    try:
        content: Any = json.loads((Path(home) / "credentials.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        content = None
    current = cast("dict[str, Any]", content).get("current") if isinstance(content, dict) else None
    return current or (_PULUMI_CLOUD if os.environ.get("PULUMI_ACCESS_TOKEN") else "")
