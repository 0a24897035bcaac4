"""Silver into gold: every decision judged.

spark-submit [--master ...] jobs/replay.py --warehouse W [--cluster NAME] [--conf FILE] [--json] [--fail-on SEVERITY]
"""

import sys

from mqreplay.cli.job import main

if __name__ == "__main__":
    sys.exit(main("replay"))
