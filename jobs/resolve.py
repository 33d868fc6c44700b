"""``sbroute resolve`` for spark-submit: ``spark-submit … jobs/resolve.py --config FILE``."""

import sys

from routing.cli import main

if __name__ == "__main__":
    # spark-submit in client mode ends with the status that this process ends with.
    sys.exit(main(["resolve", "--as-job", *sys.argv[1:]]))
