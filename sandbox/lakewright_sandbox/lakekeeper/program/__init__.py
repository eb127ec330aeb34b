"""The program of a Lakekeeper image, played by the sandbox: the same commands, which read the same variables."""
