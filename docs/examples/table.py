"""A table partitioned by day, with a renamed column."""

from lakewright.lakekeeper import Table

Table(
    "orders",
    server={"endpoint": "https://lakekeeper.example.com"},
    warehouse_id="01a1fcf2-b7e7-781a-879e-a45e6cb252fb",
    namespace="sales.daily",
    name="orders",
    columns=[
        {"name": "id", "type": "long", "required": True},
        {"name": "at", "type": "timestamptz", "required": True},
        {"name": "total", "type": "decimal(12,2)", "renamed_from": "amount"},
        {"name": "tags", "type": "map<string, string>", "doc": "Whatever the shop sends along."},
    ],
    identifier=["id"],
    partition_by=["days(at)"],
    sort_by=["at desc"],
    properties={"write.parquet.compression-codec": "zstd"},
)
