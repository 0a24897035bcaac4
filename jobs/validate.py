"""The contracts' expectations, run on every table.

spark-submit [--master ...] jobs/validate.py --warehouse W [--cluster NAME] [--conf FILE] [--json] [--fail-on SEVERITY]
"""

import sys

from mqreplay.cli.job import main

if __name__ == "__main__":
    sys.exit(main("validate"))
