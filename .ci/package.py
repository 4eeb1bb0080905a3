"""Build the wheel and the source distribution, and test the wheel without extras on every supported Python found here.

``python .ci/package.py`` writes both to ``dist/``. It ends with an error if the source distribution has unexpected
files, or if the installed wheel does not work.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
# Files needed to build, test and read the project from the source distribution.
WANTED = {
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "PKG-INFO",
    "README.md",
    "SECURITY.md",
    "benchmarks",
    "conftest.py",
    "docs",
    "examples",
    "pyproject.toml",
    "src",
    "tests",
}


def main():
    """Build, look and try."""
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", DIST, ROOT], check=True, stdout=subprocess.DEVNULL)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
        require({top for top in tops if not top.endswith(".dist-info")} == {"plstream"}, f"{wheel.name} has {tops}")
        require("plstream/py.typed" in archive.namelist(), f"{wheel.name} has no py.typed")
    with tarfile.open(sdist) as archive:
        names = [member.name.split("/", 1)[1] for member in archive.getmembers() if member.isfile()]
    # The build backend adds .gitignore to every source distribution.
    found = {name.split("/")[0] for name in names} - {".gitignore"}
    require(
        found == WANTED, f"{sdist.name} has {found - WANTED or 'no'} besides, and lacks {WANTED - found or 'nothing'}"
    )
    unwanted = [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".plstream.tmp"))]
    require(not unwanted, f"{sdist.name} has {unwanted[:3]}")
    for version in SUPPORTED:
        python = interpreter(version)
        if python is None:
            print(f"Python {version}: not installed here, not tried", flush=True)
            continue
        try_wheel(python, wheel)
        print(f"Python {version}: the wheel works without extras", flush=True)


def interpreter(version):
    """Return a Python of this version that starts, or None."""
    found = [shutil.which(f"python{version}"), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    question = ["-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"]
    for python in filter(None, found):
        answer = subprocess.run([python, *question], capture_output=True, text=True, check=False)
        if answer.stdout.strip() == version:
            return python
    return None


def try_wheel(python, wheel):
    """Install a wheel into an environment of its own, and use it from another folder."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", f"{folder}/venv"], check=True)
        own = f"{folder}/venv/bin/python"
        subprocess.run([own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel], check=True)
        subprocess.run([own, Path(__file__).with_name("use.py")], check=True, cwd=folder)


def require(holds, sentence):
    """Stop with a sentence unless something holds."""
    if not holds:
        sys.exit(sentence)


if __name__ == "__main__":
    main()
