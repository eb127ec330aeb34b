"""PlatformOutputs: what a platform stack exports, and tenant stacks read from it. A contract between stacks."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ValidationError

from lakewright.kubernetes.settings import CatalogPods
from lakewright.names.types import PrincipalArn, ServiceUrl
from lakewright.validation.problems import SpecError, list_problems
from lakewright.validation.strict_model import StrictModel

OUTPUT = "platform"
"""Name of the stack's output."""


class PlatformOutputs(StrictModel):
    """Addresses and identities of a platform. No secrets."""

    version: Literal[1] = 1
    server_version: str
    authz_backend: Literal["openfga", "allowall"]
    endpoint: ServiceUrl | None = None
    """Address of the management API for stacks; None if it is reached through a port-forward that the environment
    names."""
    catalog_uri: ServiceUrl
    """Address of the catalog for computing units: the gateway's."""
    allow_plain_http: bool = False
    jobs_token_audience: str | None = None
    kubernetes_subject: Literal["uid", "username"] = "uid"
    principal_arn: PrincipalArn | None = None
    principal_has_session_tags: bool = False
    namespace: str
    catalog_pods: CatalogPods | None = None
    """None if computing units reach the gateway by an address outside the cluster."""

    def environment_document(self) -> dict[str, dict[str, Any]]:
        """Return sections of environments/NAME.yaml with what the platform defines."""
        lakekeeper = {
            "endpoint": self.endpoint,
            "catalog_uri": self.catalog_uri,
            "kubernetes_subject": self.kubernetes_subject,
            "principal_arn": self.principal_arn,
            "principal_has_session_tags": self.principal_has_session_tags or None,
            "allow_plain_http": self.allow_plain_http or None,
        }
        settings: dict[str, Any] = {key: value for key, value in lakekeeper.items() if value is not None}
        cluster = {"catalog_pods": self.catalog_pods.model_dump(mode="json")} if self.catalog_pods else {}
        # `null` requests tokens of the cluster's own audience, so it is written too.
        return {"lakekeeper": {**settings, "jobs_token_audience": self.jobs_token_audience}, "kubernetes": cluster}


def parse_platform_outputs(outputs: Any, stack: str) -> PlatformOutputs:
    """Return the outputs of a platform stack. Raises SpecError if it has no outputs, or outputs of another version."""
    try:
        return PlatformOutputs.model_validate(outputs)
    except ValidationError as error:
        raise SpecError(f"output `{OUTPUT}` of stack {stack}", list_problems(error, outputs)) from None
