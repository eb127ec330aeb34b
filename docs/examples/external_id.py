"""A random value for a role's trust policy and the warehouse that assumes it."""

import pulumi
from lakewright.lakekeeper import ExternalId

pulumi.export("external_id", ExternalId("executions").value)
