"""Engine events, and how the command line displays them."""
