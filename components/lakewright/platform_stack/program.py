"""The platform program: read the stack's configuration, declare the server, export the outputs that tenants need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi

from lakewright.environment.extras import explain_missing_package
from lakewright.environment.platform_outputs import OUTPUT
from lakewright.platform_stack.certificates import find_server_certificate_problems, read_pem
from lakewright.platform_stack.lakekeeper_server import LakekeeperServer, PlatformFiles
from lakewright.platform_stack.manifests.openfga import OPENFGA_CA
from lakewright.platform_stack.secret_values import (
    find_openfga_database_problems,
    list_sources,
    resolve_sources,
)
from lakewright.platform_stack.settings.checks import parse_platform_spec
from lakewright.platform_stack.settings.platform import PLATFORM_KEY, PlatformSpec
from lakewright.platform_stack.settings.server_environment import build_server_environment
from lakewright.project_files.project_root import project_root
from lakewright.validation.problems import Problem, SpecError

if TYPE_CHECKING:
    import pulumi_kubernetes


def declare_platform() -> None:
    """Declare the platform of the stack's configuration. Problems are reported before anything is made."""
    try:
        server = _declare_server()
    except SpecError as error:
        raise pulumi.RunError(str(error)) from None
    except ModuleNotFoundError as error:
        raise pulumi.RunError(explain_missing_package(error)) from error
    pulumi.export(OUTPUT, server.outputs.model_dump(mode="json"))


def _declare_server() -> LakekeeperServer:
    source = f"stack {pulumi.get_stack()}, {pulumi.get_project()}:{PLATFORM_KEY}"
    spec = parse_platform_spec(pulumi.Config().get_object(PLATFORM_KEY), source)
    root = project_root(Path.cwd())
    files, problems = read_files(spec, root)
    secrets, unresolved = resolve_sources(list_sources(spec, build_server_environment(spec)), _read_config)
    problems += [*unresolved, *find_openfga_database_problems(spec, secrets)]
    if problems:
        raise SpecError(source, problems)
    bundle = spec.management.ca_bundle
    return LakekeeperServer(
        spec,
        secrets=secrets,
        files=files,
        management_ca_bundle=str((root / bundle).resolve()) if bundle else None,
        opts=pulumi.ResourceOptions(providers=[_declare_provider(spec, root)]),
    )


def read_files(spec: PlatformSpec, root: Path) -> tuple[PlatformFiles, list[Problem]]:
    """Return the contents of the files that a spec names, and their problems."""
    postgres, tls, openfga = spec.database.postgres, spec.gateway.tls, spec.server.authorization.openfga
    permissions = openfga.server if openfga else None
    files: dict[str, tuple[str, str | None]] = {
        "ca": ("server.ca_bundle", spec.server.ca_bundle),
        "database-ca": ("database.postgres.ca_bundle", postgres.ca_bundle if postgres else None),
        OPENFGA_CA: (
            "server.authorization.openfga.server.database_ca_bundle",
            permissions.database_ca_bundle if permissions else None,
        ),
    }
    authorities: dict[str, str] = {}
    problems: list[Problem] = []
    for name, (setting, path) in files.items():
        if path:
            authorities[name], file_problems = read_pem(root, path, setting)
            problems += file_problems
    certificate = None
    if tls and tls.certificate:
        setting = "gateway.tls.certificate"
        certificate, file_problems = read_pem(root, tls.certificate, setting)
        problems += file_problems or find_server_certificate_problems(certificate, setting)
    return PlatformFiles(authorities, certificate), problems


def _read_config(key: str) -> str | None:
    name = key if ":" in key else f"{pulumi.get_project()}:{key}"
    value: Any = pulumi.runtime.get_config(name)  # type: ignore[attr-defined]
    return value if isinstance(value, str) else None


def _declare_provider(spec: PlatformSpec, root: Path) -> pulumi_kubernetes.Provider:
    import pulumi_kubernetes  # noqa: PLC0415 - a missing package is explained where the program runs

    folder = spec.kubernetes.render_to
    return pulumi_kubernetes.Provider(
        "kubernetes",
        context=None if folder else spec.kubernetes.context,
        render_yaml_to_directory=str((root / folder).resolve()) if folder else None,
        enable_patch_force=None if folder else True,
        # Pods roll by the hash of their Secrets and ConfigMaps, which change in place.
        enable_secret_mutable=True,
        enable_config_map_mutable=True,
    )
