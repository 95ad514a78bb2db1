"""Reads files of a clone at a branch, a tag or a commit."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple


class Read(NamedTuple):
    """A file at a commit.

    Attributes:
        text: its text.
        commit: the first digits of the commit.
        date: the date of the commit, as ``2024-05-06``.
    """

    text: str
    commit: str
    date: str


def read(clone: Path, revision: str, path: str) -> Read:
    """Return a file of a clone, which may have no work tree.

    Raises:
        LookupError: there is no such file at that revision.
    """
    commit, date = git(clone, "log", "-1", "--format=%h %cs", "--abbrev=10", revision, "--").split()
    return Read(git(clone, "show", f"{revision}:{path}"), commit, date)


def files(clone: Path, revision: str, folder: str) -> list[str]:
    """Return the paths of the files in a folder and its folders."""
    return git(clone, "ls-tree", "-r", "--name-only", revision, folder).splitlines()


def git(clone: Path, *arguments: str) -> str:
    """Return what a command of git prints.

    Raises:
        LookupError: it failed.
    """
    done = subprocess.run(["git", "-C", str(clone), *arguments], capture_output=True)
    if done.returncode:
        raise LookupError(done.stderr.decode(errors="replace").strip())
    return done.stdout.decode(errors="replace")
