"""What checking the sites of a conversion costs, on the models that the tests have."""

from __future__ import annotations

import time
from pathlib import Path

from onnxreduce_cli.api.checks import check_sites
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.model.file.document import load

MODELS = Path(__file__).parents[1] / "tests" / "data" / "models"
TARGETS = (11, 13, 21)
ROUNDS = 5


def main() -> None:
    rows: dict[str, tuple[int, float]] = {}
    # The first check starts ONNX Runtime; that is no site's cost.
    for number in range(ROUNDS + 1):
        for path in sorted(MODELS.glob("*.onnx")):
            for target in TARGETS:
                document = load(path)
                options = Options(emulate=True)
                conversion = Conversion(document.model, target, options, base_dir=document.base_dir)
                if conversion.blockers or not conversion.sites:
                    continue
                start = time.perf_counter()
                report = check_sites(conversion)
                seconds = time.perf_counter() - start
                key = f"{path.stem} to {target}"
                best = rows[key][1] if number > 1 else seconds
                rows[key] = (report.distinct, min(best, seconds))
    print("| site checks | distinct sites | ms | ms for each |\n|---|--:|--:|--:|")
    for key, (count, seconds) in rows.items():
        print(f"| {key} | {count} | {1000 * seconds:.0f} | {1000 * seconds / count:.1f} |")
    total, sites = sum(s for _, s in rows.values()), sum(count for count, _ in rows.values())
    print(f"| all | {sites} | {1000 * total:.0f} | {1000 * total / sites:.1f} |")
