"""The running server as request handlers see it, with its pages and task queue."""
