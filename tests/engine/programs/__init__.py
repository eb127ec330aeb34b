"""Programs whose behavior on the Pulumi CLI is recorded."""
