"""References to secrets and how they are resolved, and the AWS identity that a stack works with."""
