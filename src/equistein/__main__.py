"""`python -m equistein` is `equistein`."""

import sys

from equistein.cli import main

if __name__ == "__main__":
    sys.exit(main())
