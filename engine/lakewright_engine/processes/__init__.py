"""Child processes of the engine, and the gRPC connections to them."""
