"""Pulumi provider servers for `aws` and `kubernetes`, for machines where the real plugins are not installed."""
