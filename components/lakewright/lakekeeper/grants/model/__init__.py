"""What a grant is on, and who has it."""
