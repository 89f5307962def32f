"""Draw time against K and d and the passes used, from what `python -m benchmarks designs` wrote."""

from pathlib import Path

from matplotlib import pyplot as plt

from bestarm.bench.table import read_csv

FOLDER = Path(__file__).parent


def main() -> None:
    rows = [row for row in read_csv(FOLDER / "designs_at_scale.csv") if row["part"] == "scaling"]
    figure, axes = plt.subplots(2, 2, figsize=(8, 5.6), sharex="col")
    by_rows = [row for row in rows if row["d"] == 20]
    by_columns = [row for row in rows if row["K"] == 100_000 and row["d"] != 20]
    sides = (("K", "K, rows (d = 20)", by_rows), ("d", "d, columns (K = 100,000)", by_columns))
    for (above, below), (key, label, some) in zip(axes.T, sides, strict=True):
        for kind in dict.fromkeys(row["table"] for row in some):
            mine = sorted((row for row in some if row["table"] == kind), key=lambda row: row[key])
            at = [row[key] for row in mine]
            above.loglog(at, [row["seconds"] for row in mine], marker="o", label=kind)
            below.semilogx(at, [row["passes"] for row in mine], marker="o", label=kind)
        gaussian = sorted((row for row in some if row["table"] == "gaussian"), key=lambda row: row[key])
        at = [row[key] for row in gaussian]
        above.loglog(at, [row["pass_seconds"] for row in gaussian], "k--", linewidth=1, label="one leverage pass")
        above.loglog(at, [row["read_seconds"] for row in gaussian], "k:", linewidth=1, label="one sum of the table")
        below.set_xlabel(label)
        below.set_ylim(0, 8)
    axes[0, 0].set_ylabel("seconds")
    axes[1, 0].set_ylabel("passes over the table")
    axes[0, 0].legend(fontsize=8)
    figure.suptitle("D-optimal designs to max g / d ≤ 1.001, one core", fontsize=10)
    figure.tight_layout()
    figure.savefig(FOLDER / "designs_at_scale.png", dpi=100)


if __name__ == "__main__":
    main()
