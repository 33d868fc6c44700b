"""``sbroute report`` for spark-submit: ``spark-submit … jobs/report.py --config FILE --out report.html``."""

import sys

from routing.cli import main

if __name__ == "__main__":
    # spark-submit in client mode ends with the status that this process ends with.
    sys.exit(main(["report", *sys.argv[1:]]))
