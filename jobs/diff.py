"""``sbroute diff`` for spark-submit: ``spark-submit … jobs/diff.py --config FILE --against FILE``."""

import sys

from routing.cli import main

if __name__ == "__main__":
    # spark-submit in client mode ends with the status that this process ends with.
    sys.exit(main(["diff", *sys.argv[1:]]))
