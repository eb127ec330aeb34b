"""Write the values found on servers into the spec of a tenant. Pure functions over the text of its stack file."""
