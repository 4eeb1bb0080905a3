"""What is collected where: the command line needs packages that the lowest supported releases are tested without."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("typer") else ["src/plstream/cli/*"]
