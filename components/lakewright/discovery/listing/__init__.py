"""What exists on servers, and which objects states have."""
