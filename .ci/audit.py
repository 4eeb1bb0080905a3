"""Check the installed packages against PyPI's database of known vulnerabilities.

``python .ci/audit.py`` ends with an error if an installed release has a known vulnerability, and names the release that
fixes it. If the database cannot be reached, it says so and succeeds.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import distributions
from urllib.request import urlopen

ADDRESS = "https://pypi.org/pypi/{}/{}/json"
SECONDS = 5
# A release with known vulnerabilities, to detect mirrors that answer without knowing any.
KNOWN = "pillow", "9.0.0"
OWN = {"plstream"}


def vulnerabilities(name, version):
    """Return what is known of a release; of one that PyPI does not have, nothing."""
    with urlopen(ADDRESS.format(name, version), timeout=SECONDS) as answer:  # noqa: S310
        found = json.load(answer)["vulnerabilities"]
    return [entry for entry in found if not entry.get("withdrawn")]


def described(name, version, look_up):
    """Return a line for each vulnerability of a release."""
    try:
        found = look_up(name, version)
    except (OSError, ValueError, KeyError):
        return [] if name in OWN else [f"{name} {version}: not found in the database"]
    return [
        f"{name} {version}: {entry['id']}, fixed in {', '.join(entry['fixed_in']) or 'no release'}" for entry in found
    ]


def main(look_up=vulnerabilities):
    """Print what is known of all installed releases, and return an exit code."""
    try:
        is_there = bool(look_up(*KNOWN))
    except (OSError, ValueError, KeyError):
        is_there = False
    if not is_there:
        print("The database of known vulnerabilities cannot be reached: dependencies are not audited.")
        return 0
    installed = sorted({(found.metadata["Name"].lower(), found.version) for found in distributions()})
    with ThreadPoolExecutor(16) as pool:
        lines = [line for found in pool.map(lambda one: described(*one, look_up), installed) for line in found]
    print("\n".join(lines) or f"{len(installed)} installed releases have no known vulnerability.")
    return int(any(", fixed in " in line for line in lines))


if __name__ == "__main__":
    sys.exit(main())
