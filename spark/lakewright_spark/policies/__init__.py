"""Table policies: models, resolution, and rules of retention and history. Needs pydantic only."""
