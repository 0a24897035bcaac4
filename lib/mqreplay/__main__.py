"""`python -m mqreplay` is `mqreplay`."""

import sys

from mqreplay.cli.command_line import main

if __name__ == "__main__":
    sys.exit(main())
