"""A warehouse on an AWS bucket, accessed through a role; dropped tables can be restored for a week."""

from lakewright.lakekeeper import ExternalId, Warehouse

server = {"endpoint": "https://lakekeeper.example.com"}
external_id = ExternalId("executions")
Warehouse(
    "executions",
    server=server,
    project_id="acme",
    name="executions",
    storage={
        "bucket": "acme-lakehouse",
        "key_prefix": "executions",
        "region": "eu-central-1",
        "assume_role_arn": "arn:aws:iam::123456789012:role/lakewright/lakewright.acme.executions",
    },
    credential={"type": "aws-system-identity", "external_id": external_id.value},
    delete_profile={"type": "soft", "expiration_seconds": 7 * 24 * 3600},
    deletion="protect",
)
