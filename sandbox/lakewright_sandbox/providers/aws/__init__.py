"""The `aws` provider: S3 buckets, IAM roles, KMS keys and functions that tenants use, by boto3, for a sandbox only."""
