"""The sandbox: a laptop's stand-in for the cloud, for tests and the demo. Nothing in production imports it."""
