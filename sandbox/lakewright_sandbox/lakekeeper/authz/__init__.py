"""Authorization: the stored grants, the rights that follow from them, and their enforcement."""
