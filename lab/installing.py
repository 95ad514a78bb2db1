"""Installs runtimes, each into a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from lab.recipes import BUILDS, RECIPES, Recipe
from onnxreduce_cli.targets.versions import Version, meets_all, version_conditions

#: Where the folders are, and where they are looked for again.
FOLDER = Path(os.environ.get("ONNXREDUCE_LAB", ".lab"))


@dataclass(frozen=True)
class Installed:
    """A runtime that is there.

    Attributes:
        runtime: its name, as in `targets/`.
        version: its version.
        program: what runs it: a Python, or node.
        folder: what that finds it in.
    """

    runtime: str
    version: str
    program: str
    folder: Path


class NotThereError(Exception):
    """A runtime cannot be installed here."""


class NoProgramError(NotThereError):
    """What would run it is not there: its Python, or node."""


def install(runtime: str, version: str) -> Installed:
    """Install a version of a runtime, unless that was done before.

    Raises:
        NoProgramError: what runs it is not there.
        NotThereError: nobody said how, or its packages are not to be had.
    """
    recipe = _recipe(runtime, version)
    program = (
        next(_pythons(recipe.pythons), None) if recipe.pythons else which("node") and sys.executable
    )
    if program is None:
        raise NoProgramError(f"{runtime} {version} needs {_needed(recipe)}")
    folder = FOLDER / f"{runtime}-{version}"
    done = folder / "installed"
    if not done.exists():
        for command in _commands(recipe, BUILDS.get(runtime, {}).get(version, version), program):
            found = subprocess.run(command(folder), capture_output=True, text=True)
            if found.returncode:
                raise NotThereError(found.stderr.strip().splitlines()[-1])
        done.touch()
    return Installed(runtime, version, program, folder)


def _needed(recipe: Recipe) -> str:
    return f"Python {' or '.join(recipe.pythons)}" if recipe.pythons else "node and npm"


def _commands(
    recipe: Recipe, version: str, program: str
) -> Iterator[Callable[[Path], Sequence[str]]]:
    """What to run, each for the folder to install into."""
    packages = [package.replace("{}", version) for package in recipe.packages]
    if not recipe.pythons:
        yield lambda folder: ["npm", "install", "--silent", "--prefix", str(folder), *packages]
        return
    pip = [program, "-m", "pip", "install", "--quiet", "--target"]
    yield lambda folder: [*pip, str(folder), *packages]
    for package in recipe.alone:
        named = package.replace("{}", version)
        yield lambda folder, named=named: [*pip, str(folder), "--no-deps", named]


def _recipe(runtime: str, version: str) -> Recipe:
    for recipe in RECIPES:
        if recipe.runtime == runtime and meets_all(
            Version.of(version), version_conditions(recipe.versions)
        ):
            return recipe
    known = ", ".join(dict.fromkeys(recipe.runtime for recipe in RECIPES))
    raise NotThereError(f"how to install {runtime} is not known here; known are {known}")


def _pythons(versions: Sequence[str]) -> Iterator[str]:
    """The Pythons of some versions that are there: this one, on the path, or of pyenv."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    for version in versions:
        if sys.version.startswith(f"{version}."):
            yield sys.executable
        for python in (f"python{version}", *map(str, sorted(root.glob(f"{version}.*/bin/python")))):
            try:
                found = subprocess.run([python, "-c", ""], capture_output=True)
            except OSError:
                continue
            if not found.returncode:
                yield python
