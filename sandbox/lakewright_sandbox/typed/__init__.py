"""Types of untyped values: parsed JSON, and botocore."""
