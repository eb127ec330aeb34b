"""HTTP clients of every server: retries, deadlines, responses of limited size and trusted certificates."""
