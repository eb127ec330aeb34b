"""Settings for the time after an update: checks of the tenant's data, and rules about drift."""
