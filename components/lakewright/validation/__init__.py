"""How files that users write are parsed and checked: YAML, strict models and the list of problems."""
