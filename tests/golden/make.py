"""Keep what the program gives now as what it must give: ``python tests/golden/make.py [CASE ...]``.

Only when a change of behaviour is intended. The files in ``files`` are never made again: they are
what people have on their disks.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # as in the tests: with more, last digits differ
os.environ["OPENBLAS_NUM_THREADS"] = "1"

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from golden.cases import CASES, Bench
from golden.plain import EXPECTED, differences, load, save, surroundings


def main(names: list[str]) -> None:
    """Make the golden files of some cases, or of all."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["BRIDGETRACK_MODELS"] = str(Path(folder) / "library")
        bench = Bench(Path(folder))
        for name in names or CASES:
            began = time.process_time()
            found = CASES[name](bench)
            kept = EXPECTED / f"{name}.json.gz"
            changes = list(differences(load(name), found, name)) if kept.exists() else ["new"]
            if changes:
                save(name, found)
            seconds, size = time.process_time() - began, kept.stat().st_size
            sys.stdout.write(
                f"{name:32s} {seconds:5.1f} s {size:8d} bytes  {len(changes)} changes\n"
            )
            sys.stdout.writelines(f"    {line}\n" for line in changes[:5])
    save("made_with", surroundings())
    if not names:
        for stale in {p.name.removesuffix(".json.gz") for p in EXPECTED.iterdir()} - {
            *CASES,
            "made_with",
        }:
            (EXPECTED / f"{stale}.json.gz").unlink()


if __name__ == "__main__":
    main(sys.argv[1:])
