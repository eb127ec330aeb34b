"""Objects and entries of grants."""
