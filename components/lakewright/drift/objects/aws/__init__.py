"""Objects of AWS accounts: lists where AWS has them, else the few calls that the declared properties need."""
