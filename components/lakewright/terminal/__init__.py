"""Output to terminals and logs. It escapes control characters in texts from servers."""
