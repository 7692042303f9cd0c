"""How the rule of what training keeps decides, by simulation.

    python benchmarks/keep_calibration.py [--draws 4000]

Answers set aside are drawn, three to a part of the movie, of which a share hangs together (all
alike). The starting model errs on a share of them; what was learned mends some of these errors and
makes others, with the rates of its row. Halfway has half of what is mended and a quarter of what is
broken. `training.keep` sees the verdicts and keeps one of the three. *Errs* is the share of events
that what it keeps gets wrong elsewhere, beside that of always the same one; *best* is that of
somebody who knows.

The second table has how often the sign-flip test of `training.paired` finds less than 5 % chance
where neither model is better.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridgetrack.training.keep import compared_alone
from bridgetrack.training.options import ENOUGH_TO_CHOOSE
from bridgetrack.training.paired import compare
from bridgetrack.training.validation import HeldOut
from common import header, option, row

Array = NDArray[np.float64]
COUNTS = (20, 50, 100, 300)
RATES = (
    ("a start far off", 0.70, 0.60, 0.02),
    ("mends much", 0.10, 0.06, 0.00),
    ("mends some", 0.10, 0.04, 0.02),
    ("no better", 0.10, 0.03, 0.03),
    ("breaks some", 0.05, 0.01, 0.03),
    ("breaks much", 0.02, 0.00, 0.08),
    ("doubtful answers, mends much", 0.40, 0.25, 0.05),
    ("doubtful answers, no better", 0.40, 0.10, 0.10),
    ("doubtful answers, breaks much", 0.40, 0.05, 0.25),
)
"""What the start gets wrong, what of all events learning mends, and what it breaks."""
ALIKE = 0.3
"""Share of the parts whose answers are all alike."""
KEPT = {0.0: "start", 0.5: "halfway", 1.0: "learned"}


def verdicts(
    rng: np.random.Generator, n: int, wrong: float, mended: float, broken: float
) -> tuple[HeldOut, HeldOut, NDArray[np.int64]]:
    """What was learned (with what lies halfway) and the start on n answers, and their parts."""
    part = np.arange(n) // 3
    alike = (rng.random(part[-1] + 1) < ALIKE)[part]

    def drawn() -> Array:
        return np.where(alike, rng.random(part[-1] + 1)[part], rng.random(n))

    u, halved = drawn(), drawn()
    start = u < wrong
    mends = start & (u < mended)
    breaks = ~start & (u > 1 - broken)
    middle = (start & ~(mends & (halved < 1 / 2))) | (breaks & (halved < 1 / 4))
    after = (start & ~mends) | breaks
    loss = np.zeros(n)
    halfway = HeldOut(middle.astype(float), loss)
    return HeldOut(after.astype(float), loss, halfway), HeldOut(start.astype(float), loss), part


def main() -> None:
    """Print both tables."""
    draws = int(option("--draws", 4000))
    print(header("learning", "answers set aside", *KEPT.values(), "errs, %", "always the start",
                 "always halfway", "always learned", "best"))  # fmt: skip
    for name, wrong, mended, broken in RATES:
        errs = np.array([wrong, wrong - mended / 2 + broken / 4, wrong - mended + broken])
        for n in COUNTS:
            rng = np.random.default_rng(n)
            counts = np.zeros(3)
            for _ in range(draws):
                held, start, part = verdicts(rng, n, wrong, mended, broken)
                share = compared_alone(held, start, part, many=n >= ENOUGH_TO_CHOOSE).share
                counts[list(KEPT).index(share)] += 1
            counts /= draws
            shares = [f"{100 * c:.0f} %" for c in counts]
            each = [f"{100 * e:.2f}" for e in (counts @ errs, *errs, errs.min())]
            print(row(name, n, *shares, *each))
    print()
    print(header("neither is better: chance below 5 %", *(f"{n} answers" for n in COUNTS)))
    for name, wrong, changed in (("few differ", 0.1, 0.03), ("many differ", 0.4, 0.15)):
        cells = []
        for n in COUNTS:
            rng = np.random.default_rng(n)
            below = 0
            for _ in range(draws):
                held, start, part = verdicts(rng, n, wrong, changed, changed)
                below += compare(held.wrong, start.wrong, part).chance < 0.05
            cells.append(f"{100 * below / draws:.1f} %")
        print(row(name, *cells))


if __name__ == "__main__":
    main()
