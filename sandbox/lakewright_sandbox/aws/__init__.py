"""The sandbox's AWS: moto's S3, IAM and KMS behind a proxy that checks signatures and enforces policies as AWS does."""

ACCOUNT_ID = "123456789012"
REGION = "us-east-1"
PARTITION = "aws"
