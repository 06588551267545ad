"""``python -m banbury`` is the command line."""

import sys

from banbury.cli import main

if __name__ == "__main__":
    sys.exit(main())
