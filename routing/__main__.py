"""``python -m routing`` is ``sbroute``."""

import sys

from routing.cli import main

sys.exit(main())
