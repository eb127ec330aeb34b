"""Resource providers: find, start and call their plugins."""
