"""Objects of Kubernetes clusters: list each kind once, and compare as the real plugin does."""
