"""What commands write, as plain values that can be kept and compared."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import math
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
import zarr
from threadpoolctl import threadpool_info

HERE = Path(__file__).parent
EXPECTED = HERE / "expected"
FILES = HERE / "files"

# Sentences may be reworded; versions, times and the digests of files with times in them differ
# from run to run.
WORDS = {"words", "question", "reason", "reasons", "verdict", "estimate_words", "description"}
PASSING = {
    "created",
    "versions",
    "version_of",
    "program",
    "geff_version",
    "when",
    "saved",
    "manifest",
}

# Keys that files have gained since: what was kept without them stays valid.
LATER = {"manifest"}

DECISIONS = {
    "kept",
    "lambda",
    "lambda_chosen_by",
    "strength",
    "chosen_by",
    "annotations",
    "strategy",
}
"""What a training decides, whatever the last digits."""

RTOL, ATOL = 1e-6, 1e-8
"""The last digits differ between processors."""


def plain(value: Any, folder: Path) -> Any:
    """A JSON value without sentences, times, versions and the place of the test's folder."""
    if isinstance(value, dict):
        return {
            k: _counted(v) if k in ("notes", "note") else plain(_timeless(k, _untied(k, v)), folder)
            for k, v in value.items()
            if k not in WORDS | PASSING | LATER and not (k == "version" and isinstance(v, str))
        }
    if isinstance(value, list | tuple):
        return [plain(v, folder) for v in value]
    return _placed(value, folder) if isinstance(value, str) else value


def _placed(text: str, folder: Path) -> str:
    """Paths below the folder without it, and without the numbers that keep names apart."""
    return re.sub(r"@/\d+_", "@/", text.replace(str(folder), "@"))


def _counted(value: Any) -> Any:
    return len(value) if isinstance(value, list) else None


def _untied(key: str, value: Any) -> Any:
    """The least certain events; of those with one margin, rounding says which comes first."""
    if key != "least_certain":
        return value
    margins = [event["margin"] for event in value]
    tied = {m for m in margins if sum(_same(m, other) for other in margins) > 1}
    tied |= set(margins[-1:])
    return [{"margin": e["margin"]} if e["margin"] in tied else e for e in value]


def _timeless(key: str, value: Any) -> Any:
    """Times of stages, by name; and of the steps of a training."""
    if key != "seconds":
        return value
    return sorted(value) if isinstance(value, dict) else None


def read_json(path: Path, folder: Path) -> Any:
    """A JSON file as plain values."""
    return plain(json.loads(path.read_text(encoding="utf-8")), folder)


def pixels(path: Path) -> dict[str, Any]:
    """Shape, type and hash of the pixels of a TIFF stack or a folder of TIFFs."""
    files = [path] if path.is_file() else sorted(path.glob("*.tif"))
    mark, shapes, kinds = hashlib.sha256(), set(), set()
    for file in files:
        image = tifffile.imread(file)
        shapes.add(image.shape)
        kinds.add(image.dtype.str)
        mark.update(np.ascontiguousarray(image).tobytes())
    return {
        "files": [f.name for f in files],
        "shapes": sorted(map(list, shapes)),
        "types": sorted(kinds),
        "sha256": mark.hexdigest(),
    }


def graph(path: Path, folder: Path) -> dict[str, Any]:
    """Arrays and metadata of a GEFF file."""
    group = zarr.open_group(str(path), mode="r")
    arrays = {name: _array(item) for name, item in _arrays(group)}
    metadata = dict(group.attrs)["geff"]
    metadata.pop("polygon", None)  # named from one version of the specification on
    return {"arrays": arrays, "metadata": plain(metadata, folder)}


def _arrays(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, item in sorted(group.members()):
        if isinstance(item, zarr.Group):
            yield from _arrays(item, f"{before}{name}/")
        else:
            yield f"{before}{name}", item


def _array(item: Any) -> dict[str, Any]:
    values = np.asarray(item[...])
    return {"type": values.dtype.str, "shape": list(values.shape), "values": values.tolist()}


def result(out: Path, folder: Path, graphs: bool = True) -> dict[str, Any]:
    """Everything that a tracking command left in its folder."""
    found: dict[str, Any] = {"names": sorted(p.name for p in out.iterdir())}
    for path in sorted(out.glob("*.csv")):
        found[path.name] = path.read_text(encoding="utf-8")
    for path in sorted(out.glob("*.json")):
        found[path.name] = read_json(path, folder)
    if (out / "ctc").is_dir():
        found["res_track.txt"] = (out / "ctc" / "res_track.txt").read_text(encoding="utf-8")
        found["masks"] = pixels(out / "ctc")
    if graphs and (out / "tracks.geff").is_dir():
        found["tracks.geff"] = graph(out / "tracks.geff", folder)
    return found


def save(name: str, content: Any) -> Path:
    """Keep what a case gave; equal content gives an equal file."""
    path = EXPECTED / f"{name}.json.gz"
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    return path


def load(name: str) -> Any:
    """What a case gave when it was kept."""
    return json.loads(gzip.decompress((EXPECTED / f"{name}.json.gz").read_bytes()))


def outline(value: Any, key: str = "") -> Any:
    """Keys and decisions alone."""
    if isinstance(value, dict):
        return {k: outline(v, k) for k, v in value.items()}
    return value if key in DECISIONS and not isinstance(value, list) else None


def surroundings() -> dict[str, Any]:
    """What the last digits hang on: kernels of linear algebra, and solvers."""
    kernels = sorted({str(i.get("architecture")) for i in threadpool_info()} - {"None"})
    names = ("numpy", "scipy", "scikit-image", "daqp", "clarabel", "piqp", "qpsolvers", "highspy")
    return {"kernels": kernels, "versions": {name: version(name) for name in names}}


def differences(expected: Any, found: Any, where: str = "") -> Iterator[str]:
    """Where two contents differ by more than rounding; tables are compared cell by cell."""
    if isinstance(expected, dict) and isinstance(found, dict):
        if list(expected) != list(found) and set(expected) == set(found):
            yield f"{where}: the order of the keys is {list(found)}, was {list(expected)}"
        for key in expected.keys() - found.keys():
            yield f"{where}/{key} is missing"
        for key in found.keys() - expected.keys():
            yield f"{where}/{key} is new"
        for key in expected.keys() & found.keys():
            yield from differences(expected[key], found[key], f"{where}/{key}")
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            yield f"{where} has {len(found)} entries, had {len(expected)}"
        for k, (one, other) in enumerate(zip(expected, found, strict=False)):
            yield from differences(one, other, f"{where}[{k}]")
    elif isinstance(expected, str) and isinstance(found, str) and where.endswith(".csv"):
        yield from _table_differences(expected, found, where)
    elif not _same(expected, found):
        yield f"{where} is {found!r}, was {expected!r}"


def _table_differences(expected: str, found: str, where: str) -> Iterator[str]:
    old, new = (list(csv.reader(io.StringIO(text))) for text in (expected, found))
    if expected.count("\r") != found.count("\r"):
        yield f"{where}: other line ends"
    if old[0] != new[0]:
        yield f"{where}: the columns are {new[0]}, were {old[0]}"
        return
    if len(old) != len(new):
        yield f"{where} has {len(new) - 1} rows, had {len(old) - 1}"
    for k, (one, other) in enumerate(zip(old[1:], new[1:], strict=False)):
        for name, was, now in zip(old[0], one, other, strict=True):
            if was != now and not _same(_number(was), _number(now)):
                yield f"{where}/{name}[{k}] is {now!r}, was {was!r}"


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return one == other or math.isclose(one, other, rel_tol=RTOL, abs_tol=ATOL)
    return type(one) is type(other) and one == other
