"""`python -m lakewright.cli` is `lakewright`, for a process that starts others like itself."""

from lakewright.cli import main

if __name__ == "__main__":
    main()
