"""The tenant as a component of a Pulumi package, for programs in TypeScript, YAML, Go and other languages."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import pulumi
from pulumi.errors import InputPropertiesError, InputPropertyError, InputPropertyErrorDetails
from pulumi.provider import ConstructResult, Provider
from pulumi.provider.server import main
from typing_extensions import override

from lakewright.environment.extras import explain_missing_package
from lakewright.explanation.package_schema import TENANT_TOKEN, build_package_schema
from lakewright.spec import SpecError, TenantSpec
from lakewright.tenant.program import create_tenant
from lakewright.validation.documents import as_list, as_mapping


class TenantPackage(Provider):
    """The provider of the package. It has one component, the tenant."""

    def __init__(self) -> None:
        """Derive the package's schema from the spec."""
        package_version = version("lakewright")
        super().__init__(
            package_version, json.dumps(build_package_schema(TenantSpec.model_json_schema(), package_version))
        )

    @override
    def construct(
        self,
        name: str,
        resource_type: str,
        inputs: Mapping[str, Any],
        options: pulumi.ResourceOptions | None = None,
    ) -> ConstructResult:
        """Declare the tenant. A program that calls `declare_tenant` has equal URNs."""
        if resource_type != TENANT_TOKEN:
            raise pulumi.RunError(f"{resource_type}: expected {TENANT_TOKEN}, the only component of the package")
        environment, spec = read_inputs(name, inputs)
        try:
            tenant = create_tenant(spec, environment.parent, f"tenant {name}", options)
        except SpecError as error:
            # Pulumi prints a traceback for other errors.
            details = [
                InputPropertyErrorDetails(property_path=problem.path, reason=str(replace(problem, path="")))
                for problem in error.problems
            ]
            raise InputPropertiesError(f"tenant {name} has mistakes", details) from None
        except ModuleNotFoundError as error:
            raise InputPropertiesError(explain_missing_package(error)) from error
        outputs = {
            "warehouse_ids": tenant.warehouse_ids,
            "role_arns": tenant.role_arns,
            "computing_units": tenant.computing_units,
            "catalog_config": tenant.catalog_config.apply(lambda config: config.model_dump(mode="json")),
        }
        return ConstructResult(tenant.urn, outputs)


def read_inputs(name: str, inputs: Mapping[str, Any]) -> tuple[Path, dict[str, Any]]:
    """Return the environment's file, and the spec that the inputs of a component declare.

    Args:
        name: Name of the resource, which is the tenant's.
        inputs: The inputs. All have to be plain values: resources depend on them.

    Raises:
        InputPropertyError: An input is an output of another resource, or the environment or name cannot be used.
    """
    if outputs := sorted(key for key, value in inputs.items() if isinstance(value, pulumi.Output)):
        raise InputPropertyError(
            outputs[0],
            "expected a plain value, found an output or a secret, which a preview does not know; write the"
            " value, and a secret as a reference such as config:KEY",
        )
    environment = Path(str(inputs.get("environment", "")))
    if not environment.is_absolute() or environment.suffix != ".yaml":
        raise InputPropertyError(
            "environment",
            f"expected the absolute path of environments/NAME.yaml, found `{environment}`; write"
            " `${pulumi.cwd}/environments/NAME.yaml`",
        )
    if (declared_name := inputs.get("name", name)) != name:
        raise InputPropertyError("name", f"expected `{name}`, the name of the resource, found `{declared_name}`")
    spec = {key: _to_integers(value) for key, value in inputs.items() if value is not None}
    return environment, {"version": 1, **spec, "name": name, "environment": environment.stem}


def _to_integers(value: Any) -> Any:
    """Return a value with whole numbers as integers: Pulumi's protocol has floating-point numbers only."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _to_integers(entry) for key, entry in as_mapping(cast(object, value)).items()}
        case list():
            return [_to_integers(entry) for entry in as_list(cast(object, value))]
        case _:
            return value


def serve_package() -> None:
    """Serve the package to the engine that started this process."""
    main(TenantPackage(), sys.argv[1:])
