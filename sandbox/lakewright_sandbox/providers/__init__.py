"""Pulumi provider servers for `aws` and `kubernetes` that talk to a sandbox alone."""
