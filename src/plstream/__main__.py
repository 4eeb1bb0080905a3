"""``python -m plstream``: the same as the command ``plstream``."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
