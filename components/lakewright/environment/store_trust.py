"""Certificate authorities of a tenant's stores, in what its pods trust."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lakewright.credentials.aws_session import write_certificate_file
from lakewright.environment.environment import Environment
from lakewright.kubernetes.settings import CaBundle


def trust_stores(environment: Environment, certificates: Sequence[str | None]) -> Environment:
    """Return the environment with the authorities of stores in the file that pods trust.

    A ConfigMap or Secret of the platform, and a file of the images, must have them already.

    Args:
        environment: The environment.
        certificates: Certificates of the tenant's stores in PEM; None for a store that every machine trusts.
    """
    authorities = [text for text in dict.fromkeys(certificates) if text]
    bundle = environment.kubernetes.ca_bundle
    is_given = bundle.file is None if bundle else environment.lakekeeper.jobs_ca_bundle is not None
    if not authorities or is_given:
        return environment
    trusted = bundle.file.read_text(encoding="utf-8") if bundle and bundle.file else _public(environment)
    file = write_certificate_file("".join([trusted, *authorities]))
    cluster = environment.kubernetes.model_copy(update={"ca_bundle": CaBundle(file=file)})
    return environment.model_copy(update={"kubernetes": cluster})


def _public(environment: Environment) -> str:
    """Return the public authorities, if the catalog's certificate may be of one of them."""
    import certifi  # noqa: PLC0415 - needed by stores with an authority of their own alone

    return (
        Path(certifi.where()).read_text(encoding="utf-8") if environment.lakekeeper.catalog.startswith("https") else ""
    )
