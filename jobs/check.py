"""``sbroute check`` for spark-submit: ``spark-submit … jobs/check.py PATH…``."""

import sys

from routing.cli import main

if __name__ == "__main__":
    # spark-submit in client mode ends with the status that this process ends with.
    sys.exit(main(["check", *sys.argv[1:]]))
