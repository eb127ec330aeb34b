"""AWS and Kubernetes objects: find quickly which ones surely are as declared; providers compare the others."""
