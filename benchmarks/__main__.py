"""Runs the benchmarks: `python -m benchmarks [NAME...]`."""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from pathlib import Path

from benchmarks import (
    fleet,
    harness,
    idioms,
    older_runtimes,
    real_models,
    site_checks,
    startup,
    verifying,
)
from benchmarks.cases import cases

#: Benchmarks that are no comparison of converters, and print what they find.
OTHERS = {
    "startup": startup.main,
    "site-checks": site_checks.main,
    "verify": verifying.main,
    "idioms": idioms.main,
    "fleet": fleet.main,
    "real-models": real_models.main,
    "older-runtimes": older_runtimes.main,
}


def main() -> None:
    found = cases()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join([*found, *OTHERS])}; default all")
    parser.add_argument("--folder", help="where the models are put; several gigabytes")
    parser.add_argument("--make", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        key, path = options.make
        found[key].make(path)
        return
    unknown = set(options.names) - {*found, *OTHERS}
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores\n", flush=True)
    for key, case in found.items():
        if not options.names or key in options.names:
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                print(harness.run(case, key, Path(folder)), flush=True)
            print(flush=True)
    for key, other in OTHERS.items():
        if not options.names or key in options.names:
            other()
            print(flush=True)


if __name__ == "__main__":
    main()
