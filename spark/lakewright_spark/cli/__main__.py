"""`python -m lakewright_spark.cli`, where the console script is not on the PATH."""

from lakewright_spark.cli import main

if __name__ == "__main__":
    main()
