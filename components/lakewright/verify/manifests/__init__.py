"""Read manifests of pods: their secrets, and the addresses that they may reach. Pure functions."""
