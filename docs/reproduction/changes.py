"""Write changes.md: what became of the verdicts of an earlier report, by its table and the sentences of this one."""

import csv
from pathlib import Path

FOLDER = Path(__file__).parent
SETTINGS = ("as printed", "published code", "best effort")
INTRODUCTION = """# What changed in the report on the paper

The report of 2026-11-16 had one setting: the D-optimal form of Algorithm 2, rivals with the bounds of their own papers,
the text's and the code's panels averaged. [The report](report.md) has three. Here is each verdict of then beside those
of now, and why it changed. The sections are those of the paper now; they were one too low. The numbers of `gse-lin-fwg`
were no longer what the code gives.
"""


def main() -> None:
    with (FOLDER / "before.csv").open(newline="") as before, (FOLDER / "sentences.csv").open(newline="") as now:
        then, found = list(csv.DictReader(before)), list(csv.DictReader(now))
    number = {(row["place"], row["sentence"]): row["number"] for row in found}
    verdicts = {(row["number"], row["setting"]): row["verdict"] for row in found}
    rows, same, turned = [], 0, 0
    for one in then:
        place = number[one["section"], one["now"]]
        told = [verdicts[place, setting] for setting in SETTINGS]
        unchanged = all(verdict in (one["verdict"], "–") for verdict in told)
        same += unchanged
        turned += one["verdict"] == "does not hold" and "holds" in told
        why = "" if unchanged else one["why"]
        rows.append([one["sentence"], one["verdict"], f"[{place}](report.md#{place})", *told, why])
    failed = sum(one["verdict"] == "does not hold" for one in then)
    heads = ["sentence then", "verdict then", "now", *SETTINGS, "why"]
    told = (
        f"Of {len(then)} verdicts {same} are the same in every setting that can be had. Of the {failed} that did not "
        f"hold, {turned} hold in one setting or more. {len(number) - len(then)} sentences are new."
    )
    lines = ["| " + " | ".join(row) + " |" for row in (heads, ["---"] * len(heads), *rows)]
    (FOLDER / "changes.md").write_text("\n".join([INTRODUCTION, told, "", *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
