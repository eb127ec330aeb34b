"""The Pulumi program's process and the gRPC services that the engine offers to it."""
