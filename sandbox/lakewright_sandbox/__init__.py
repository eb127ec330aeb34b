"""The sandbox: local stand-ins for the cloud, for tests and the demo. No production code imports it."""
