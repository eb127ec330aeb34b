"""Commands about IAM roles of tenants' own buckets: `byo` and `external-ids`."""
