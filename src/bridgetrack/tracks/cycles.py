"""Cell-cycle numbers: times between divisions, with tracks that end otherwise as censored."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bridgetrack.arrays import Array, Mask
from bridgetrack.tracks.table import titles, track_table, units
from bridgetrack.tracks.tracks import Tracks


@dataclass(frozen=True)
class CellCycles:
    """Lives of the cells that were born by a division in view.

    Parameters
    ----------
    cycles
        One row per such track: ``track_id``, ``lineage_id``, ``mother``, ``generation``,
        ``birth`` (since the first frame), ``duration`` (from the first sight to the first sight
        of the daughters, or to the last sight), ``divides`` (else the duration is censored: the
        track merges, leaves, is lost or the movie ends), ``ends_in``, ``growth``, ``mean_speed``,
        ``certainty``; units in brackets as in `track_table`.
    survival
        Kaplan and Meier's estimate, one row per time at which something ends: ``time``,
        ``at_risk``, ``divide``, ``censored``, ``undivided`` (probability not to have divided
        by then) and ``low``, ``high`` (95 % interval, log-log).
    generations
        One row per generation: ``tracks``, ``divide``, mean and standard deviation of the
        durations of those that divide, medians of growth and speed.
    unit
        Of all times, ``min`` or ``frames``.
    """

    cycles: pd.DataFrame
    survival: pd.DataFrame
    generations: pd.DataFrame
    unit: str

    @property
    def median(self) -> tuple[float, float, float]:
        """Time after which half of the cells have divided, and its 95 % interval; NaN: later."""

        def crossing(name: str) -> float:
            below = self.survival[self.survival[name] <= 0.5]
            return float(below["time"].iloc[0]) if len(below) else np.nan

        return crossing("undivided"), crossing("low"), crossing("high")

    @property
    def words(self) -> str:
        """The numbers in plain words."""
        n, divide = len(self.cycles), int(self.cycles["divides"].sum())
        if not n:
            return "No cell was born by an observed division."
        told = [
            f"{n} cells were born by an observed division; {divide or 'none'} of them divided "
            "again."
        ]
        half, low, high = self.median
        reach = f"{_time(low, self.unit)} to {_time(high, self.unit)}"
        if np.isnan(high):
            reach = "unknown" if np.isnan(low) else f"{_time(low, self.unit)} or more"
        seen = "cells that merge, leave or outlast the movie are censored when last seen"
        ends = self.cycles["ends_in"].tolist()
        for name, did in (("death", "died"), ("fusion", "fused")):
            if n_named := ends.count(name):
                told.append(f"{n_named} {did}, as annotated.")
        if not divide:
            return " ".join(told)
        if np.isnan(half):
            told.append(
                "Fewer than half divided while observed (95 % confidence interval of the time "
                f"after which half have divided: {reach}; {seen})."
            )
        else:
            told.append(
                f"Half divided within {_time(half, self.unit)} (95 % confidence interval {reach}; "
                f"{seen})."
            )
        return " ".join(told)


def cell_cycles(tracks: Tracks) -> CellCycles:
    """Times between divisions, and the measures of these cells."""
    geometry = tracks.geometry
    title, unit, per = titles(geometry), units(geometry)["time"], geometry.frame_interval or 1.0
    table = track_table(tracks)
    born = tracks.links[tracks.links["event"] == "divide"].drop_duplicates("track_id")
    mothers = pd.Series(born["parent_id"].to_numpy(), index=born["track_id"].to_numpy())
    start = table.set_index("track_id")[title["start"]]
    # When the daughters of every mother begin.
    after = start.reindex(mothers.index).groupby(mothers).min()
    kept = table[table["track_id"].isin(mothers.index)]
    ids, first = kept["track_id"], kept[title["start"]].to_numpy(dtype=np.float64)
    divides = ids.isin(after.index).to_numpy(dtype=bool)
    until = np.where(divides, after.reindex(ids), kept[title["end"]]).astype(np.float64)
    duration, growth, speed = (until - first) * per, title["growth"], title["mean_speed"]
    cycles = kept[["track_id", "lineage_id"]].reset_index(drop=True)
    cycles["mother"] = mothers.reindex(ids).to_numpy(dtype=np.int64)
    cycles["generation"] = kept["generation"].to_numpy()
    cycles[f"birth [{unit}]"], cycles[f"duration [{unit}]"] = first * per, duration
    cycles["divides"] = divides
    for name in ("ends_in", growth, speed, "certainty"):
        cycles[name] = kept[name].to_numpy()
    groups = cycles.groupby("generation")
    lived = cycles[divides].groupby("generation")[f"duration [{unit}]"]
    generations = pd.DataFrame(
        {
            "tracks": groups.size(),
            "divide": groups["divides"].sum(),
            f"mean duration [{unit}]": lived.mean(),
            f"standard deviation [{unit}]": lived.std(),
            f"median {growth}": groups[growth].median(),
            f"median {speed.removeprefix('mean_')}": groups[speed].median(),
        }
    ).reset_index()
    return CellCycles(cycles, survival(duration, divides), generations, unit)


def survival(duration: Array, divides: Mask) -> pd.DataFrame:
    """Kaplan and Meier's estimate of how many have not divided by a time, see `CellCycles`.

    Each was seen for a `duration` and divided then, or was lost from view undivided, shapes (n,).
    """
    from scipy.stats import CensoredData, ecdf  # slow to import

    columns = ["time", "at_risk", "divide", "censored", "undivided", "low", "high"]
    if not len(duration):
        return pd.DataFrame(columns=columns, dtype=np.float64)
    time, place = np.unique(duration, return_inverse=True)
    ends = np.bincount(place)
    divide = np.bincount(place, weights=divides).astype(np.int64)
    at_risk = len(duration) - np.r_[0, np.cumsum(ends)[:-1]]
    curve = ecdf(CensoredData.right_censored(duration, ~divides)).sf
    left = curve.probabilities
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for ends of the curve, where the variance is unknown
        interval = curve.confidence_interval(0.95, method="log-log")
    # known between the first division and the last survivor
    bounds = (interval.low.probabilities, interval.high.probabilities)
    low, high = (np.where((left > 0) & (left < 1), bound, left) for bound in bounds)
    high = np.where(left == 0, np.r_[1.0, high[:-1]], high)
    values = (time, at_risk, divide, ends - divide, left, low, high)
    return pd.DataFrame(dict(zip(columns, values, strict=True)))


def _time(value: float, unit: str) -> str:
    return f"{value / 60:.1f} h" if unit == "min" else f"{value:.1f} frames"
