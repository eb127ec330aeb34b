"""Load an environment outside a program, with the outputs of the platform stack that it names.

Import it only to read an environment: its models are slow to load.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

from lakewright_engine.model.errors import EngineError
from lakewright_engine.state.backends import is_native
from lakewright_engine.state.outputs import stack_outputs

from lakewright.environment.environment import Environment
from lakewright.environment.errors import PlatformUnreadableError
from lakewright.environment.platform_outputs import OUTPUT
from lakewright.project_files import stack_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakewright_engine.project.project import PulumiProject
    from lakewright_engine.project.stack_config import StackConfig


def load_environment(project: PulumiProject, name: str) -> Environment:
    """Return an environment of a project, with the platform stack that it may name. Raises SpecError."""
    path = stack_files.environment_file(project.root, name)
    return Environment.load(path, read_platform=platform_reader(project))


def platform_reader(project: PulumiProject) -> Callable[[str], Any]:
    """Return a function that reads the output of a platform stack. It raises PlatformUnreadableError."""
    return lambda stack: _platform_output(project, stack)


def _platform_output(project: PulumiProject, stack: str) -> Any:
    """Return the output of a platform stack, natively or by the Pulumi CLI. Raises PlatformUnreadableError."""
    if is_native(project.state_url):
        _, name, instance = stack.split("/")
        try:
            return stack_outputs(project.backend(), name, instance).get(OUTPUT)
        except EngineError as error:
            raise PlatformUnreadableError(f"platform stack {stack} cannot be read: {error}") from None
    if shutil.which("pulumi") is None:
        raise PlatformUnreadableError(
            f"platform stack {stack} cannot be read: install the Pulumi CLI to read {project.state_url}"
        )
    command = ["pulumi", "stack", "output", "--json", "--stack", stack]
    process = subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=False)
    if process.returncode != 0:
        raise PlatformUnreadableError(f"platform stack {stack} cannot be read: {process.stderr.strip()}")
    return json.loads(process.stdout).get(OUTPUT)


def stack_resolver(settings: StackConfig) -> Callable[[str], str]:
    """Return a function that returns the secret of a reference, also of a reference to the stack's configuration."""
    from lakewright_engine.model.errors import EngineError  # noqa: PLC0415

    from lakewright.credentials import references  # noqa: PLC0415

    def resolve(reference: str) -> str:
        try:
            return references.resolve(reference, settings.get)
        except EngineError as error:  # such as a missing passphrase
            raise references.UndecryptedConfigError(f"`{reference}` cannot be read: {error}") from None

    return resolve
