"""Write what was found on the servers into the spec of a tenant. Pure functions over the text of its stack file."""
