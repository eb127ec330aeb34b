"""What people read on a terminal or in a log: no text from a server controls either."""
