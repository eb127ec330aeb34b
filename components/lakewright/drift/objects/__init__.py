"""AWS and Kubernetes objects: find quickly the objects that surely are as declared; providers compare the rest."""
