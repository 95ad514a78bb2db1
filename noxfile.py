"""Installs what is distributed, in environments of its own, on every Python that is found.

.venv/bin/nox
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import nox

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
HERE = Path(__file__).parent
BUILT = HERE / "build" / "distributions"


# Those that pyenv has are on the path only in the folders that ask for them.
for folder in Path.home().glob(".pyenv/versions/*/bin"):
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"

# A Python that is not there is said, and left out.
nox.options.error_on_missing_interpreters = False


@nox.session
def build(session: nox.Session) -> None:
    """Build the wheel and the source distribution; a warning is an error."""
    shutil.rmtree(BUILT, ignore_errors=True)
    session.install("build", "twine")
    session.run("python", "-W", "error", "-m", "build", "--quiet", "--outdir", str(BUILT))
    session.run("twine", "check", "--strict", *map(str, BUILT.iterdir()))


@nox.session(python=VERSIONS, requires=["build"])
def smoke(session: nox.Session) -> None:
    """Install the wheel, and use it from elsewhere."""
    _use(session, "*.whl")


@nox.session(requires=["build"])
def sdist(session: nox.Session) -> None:
    """Install the source distribution, and use it from elsewhere, on the Python that runs this."""
    _use(session, "*.tar.gz")


@nox.session(python=VERSIONS, requires=["build"], default=False)
def sdists(session: nox.Session) -> None:
    """Do so on every Python."""
    _use(session, "*.tar.gz")


def _use(session: nox.Session, form: str) -> None:
    (built,) = BUILT.glob(form)
    session.install(str(built))
    samples = [str(path) for path in sorted((HERE / "samples").glob("*.onnx"))]
    session.chdir(session.create_tmp())
    session.run("python", "-I", "-W", "error", str(HERE / "tests" / "smoke.py"), *samples)


@nox.session(default=False)
def mutation(session: nox.Session) -> None:
    """Change the code in small ways, and look whether its tests notice; an hour at most."""
    session.install("-e", ".[test]", "cosmic-ray", "coverage")
    session.run("python", "-m", "tests.mutation", *session.posargs)
