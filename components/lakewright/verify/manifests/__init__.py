"""What manifests say about pods: their secrets, and the addresses that they may reach. Pure functions."""
