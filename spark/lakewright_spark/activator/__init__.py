"""Start computing units on use, and stop them when there is no traffic: a TCP proxy before Kubernetes Deployments."""
