"""The resource types of the AWS provider, and their calls of AWS."""
