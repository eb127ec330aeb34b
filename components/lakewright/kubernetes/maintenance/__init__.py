"""Maintenance of a tenant on Kubernetes: its CronJobs, and the Spark executors of their runs."""
