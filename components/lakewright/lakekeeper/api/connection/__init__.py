"""One server: its address and authentication, the calls to it, and what its version can do."""
