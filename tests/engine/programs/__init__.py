"""Programs whose behaviour on the Pulumi CLI is recorded."""
