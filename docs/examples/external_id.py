"""A random value for a role's trust policy and the warehouse that assumes the role."""

import pulumi
from lakewright.lakekeeper import ExternalId

pulumi.export("external_id", ExternalId("executions").value)
