"""The `aws` provider: S3 buckets, IAM roles and the functions that tenants use, by boto3, towards a sandbox only."""
