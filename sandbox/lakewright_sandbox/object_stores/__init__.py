"""Object stores of other clouds: their signatures and tokens, and servers that enforce them before an emulator."""
