"""What a program asks for when it registers a resource: desired state, aliases, transforms and hooks."""
