"""``sbroute candidates`` for spark-submit: ``spark-submit … jobs/candidates.py --config FILE``."""

import sys

from routing.cli import main

if __name__ == "__main__":
    # spark-submit in client mode ends with the status that this process ends with.
    sys.exit(main(["candidates", *sys.argv[1:]]))
