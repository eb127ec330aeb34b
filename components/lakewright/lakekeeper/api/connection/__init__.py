"""The connection to one server: address, authentication, calls, and the features of its version."""
