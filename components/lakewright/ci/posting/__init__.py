"""Comments, issues and messages on servers: GitHub, GitLab and webhooks. Tokens come from the environment only."""
