"""The Bootstrap and Project resources."""
