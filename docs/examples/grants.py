"""All grants on a warehouse: other grants are removed, except the creator's grants."""

from lakewright.lakekeeper import Grants

Grants(
    "executions",
    server={"endpoint": "https://lakekeeper.example.com"},
    on={"type": "warehouse", "warehouse_id": "01a1fcf2-b7e7-781a-879e-a45e6cb252fb"},
    grants=[
        {"privilege": "select", "role": "01a1fcf2-0000-781a-879e-a45e6cb252fb"},
        {"privilege": "modify", "user": "oidc~spark-jobs"},
    ],
)
