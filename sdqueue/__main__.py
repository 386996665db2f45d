"""`python -m sdqueue`."""

import sys

from sdqueue.cli import main

if __name__ == "__main__":
    sys.exit(main())
