"""``python -m evenkeel``."""

from evenkeel._cli import main

main()
