"""``python -m emceepee_trio`` is ``emceepee``."""

import sys

from .cli import main

sys.exit(main())
