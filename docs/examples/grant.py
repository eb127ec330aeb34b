"""One additional privilege on a namespace, next to other grants."""

from lakewright.lakekeeper import Grant

Grant(
    "spark-writes-results",
    server={"endpoint": "https://lakekeeper.example.com"},
    on={"type": "namespace", "warehouse_id": "01a1fcf2-b7e7-781a-879e-a45e6cb252fb", "namespace": "results"},
    privilege="modify",
    user="oidc~spark-jobs",
)
