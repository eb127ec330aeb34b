"""What is watched after an update: checks of the tenant's data, and rules about drift."""
