"""The sandbox's identity provider: signed tokens for OAuth2 client credentials, and the keys to check them."""
