"""AWS's policy language: parsing, matching and evaluating policies as the IAM User Guide describes. Pure functions."""
