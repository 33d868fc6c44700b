"""``sbroute import`` for spark-submit: ``spark-submit … jobs/import_.py catalog DIR --config FILE``."""

import sys

from routing.cli import main

if __name__ == "__main__":
    # spark-submit in client mode ends with the status that this process ends with.
    sys.exit(main(["import", *sys.argv[1:]]))
