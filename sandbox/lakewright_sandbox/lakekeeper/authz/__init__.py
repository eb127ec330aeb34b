"""Who may do what: the grants that are stored, what follows from them, and where it is enforced."""
