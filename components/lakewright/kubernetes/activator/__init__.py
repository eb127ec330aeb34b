"""The activator: it starts idle computing units on use, and stops them when there is no traffic."""
