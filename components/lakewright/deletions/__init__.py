"""What an operation deletes: the checks of a destruction before it starts, and the contents of what is deleted."""
