"""The sandbox's AWS: moto's S3 and IAM behind a gate that checks signatures and enforces policies as AWS documents."""

ACCOUNT_ID = "123456789012"
REGION = "us-east-1"
PARTITION = "aws"
