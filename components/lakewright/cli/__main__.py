"""`python -m lakewright.cli` is `lakewright`, for a process that starts further processes of `lakewright`."""

from lakewright.cli import main

if __name__ == "__main__":
    main()
