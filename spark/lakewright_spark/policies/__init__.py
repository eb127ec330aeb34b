"""Table policies where they are used: which hold for a table, and the tables' properties that keep them."""
