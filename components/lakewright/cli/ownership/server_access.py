"""How the search for owners reads the environments, secrets and states of a project's stacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

    from lakewright.environment.environment import Environment
    from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
    from lakewright.project_files.state_objects import StateObjects


@dataclass(frozen=True)
class ServerAccess:
    """A project, and functions that read its environments and the secrets of its stacks on first use."""

    project: PulumiProject
    load_environment: Callable[[str], Environment]
    """Returns an environment by its name. Raises SpecError or PlatformUnreadableError."""
    open_resolver: Callable[[str], Callable[[str], str]]
    """Returns a function that resolves references to secrets, by the name of a stack."""
    _objects: dict[str, StateObjects | None] = field(default_factory=dict[str, "StateObjects | None"], init=False)

    def read_objects(self, stack: str) -> StateObjects | None:
        """Return the objects in the state of a stack of this project. The state is read once.

        Returns:
            No objects for a stack without a state; None if the state cannot be read. The run itself reports that.
        """
        if stack not in self._objects:
            self._objects[stack] = self._load_objects(stack)
        return self._objects[stack]

    def find_bucket(self, stack: str, bucket: str, region: str | None) -> OwnBucket:
        """Return a bucket in the AWS account of a stack's environment, with how the stack reaches it.

        Raises:
            CannotCountError: The environment cannot be read.
        """
        from lakewright.lakekeeper.buckets.own_bucket import OwnBucket  # noqa: PLC0415
        from lakewright.lakekeeper.provider.errors import CannotCountError  # noqa: PLC0415
        from lakewright.project_files.stack_files import raw_spec  # noqa: PLC0415

        name = raw_spec(self.project.stack_file(stack)).get("environment")
        try:
            aws = self.load_environment(str(name)).aws
        except LakewrightError as error:
            raise CannotCountError(f"bucket {bucket}: environment `{name}` cannot be read: {error}") from None
        return OwnBucket.model_validate(aws.describe_access(bucket, region or aws.region or "us-east-1"))

    def _load_objects(self, stack: str) -> StateObjects | None:
        from lakewright_engine.model.errors import StateError  # noqa: PLC0415 - `--help` needs no engine
        from lakewright_engine.state.backends import is_native  # noqa: PLC0415

        from lakewright.fleet.states import export_state_by_cli  # noqa: PLC0415
        from lakewright.project_files.state_objects import StateObjects, read_state_objects  # noqa: PLC0415

        project = self.project
        try:
            if not is_native(project.state_url):
                exported = export_state_by_cli(project, stack)
                return StateObjects() if exported is None else read_state_objects(exported)
            backend = project.backend()
            if not backend.exists(project.name, stack):
                return StateObjects()
            return read_state_objects(backend.export(project.name, stack))
        except StateError:
            return None
