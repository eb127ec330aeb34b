"""Authorization of requests before their handlers run."""
