"""Types for what has none: values of parsed JSON, and botocore."""
