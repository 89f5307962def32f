"""Jobs as people type them: from a table to an answer, and no command is refused."""

import csv
import random
from pathlib import Path

import openpyxl
import pytest

from tests.cli.commands import fine, refused, rows, state, write

ADS = "ad,picture,headline\nA1,face,ask\nA2,face,tell\nA3,car,ask\nA4,car,tell\nA5,sea,ask\nA6,sea,tell\n"
RATES = {"A1": 0.02, "A2": 0.03, "A3": 0.02, "A4": 0.03, "A5": 0.08, "A6": 0.05}


def wells(count):
    """The names of a 96-well plate's first wells, row by row."""
    return [f"{'ABCDEFGH'[at // 12]}{at % 12 + 1}" for at in range(count)]


def served(path, chance, more=0):
    """A day's counts of a file of `ask --by arm`, with some views more than were asked for."""
    with open(path) as file:
        asked = {row["arm"]: int(row["times"]) for row in csv.DictReader(file)}
    lines = ["arm,successes,trials"]
    for arm, times in asked.items():
        views = times + (more if arm == "A2" else 0)
        lines.append(f"{arm},{sum(chance.random() < RATES[arm] for _ in range(views))},{views}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("extras", ["free", "spend"])
def test_ads_are_shown_by_the_day_and_their_clicks_counted(call, extras):
    write(ADS, "ads.csv")
    fine(
        call(
            "create-study",
            "ads",
            "--arms",
            "ads.csv",
            "--id",
            "ad",
            "--model",
            "logistic",
            "--budget",
            6000,
            "--batch",
            1500,
            "--seed",
            1,
        )
    )
    chance, beyond = random.Random(1), 0
    for day in range(10):
        said = fine(call("ask", "--by", "arm", "-o", f"day{day}.csv"))
        if "the study is over" in said:
            break
        assert "fill in the columns successes and trials (blank: as times) of" in said
        write(served(f"day{day}.csv", chance, more=1), f"clicks{day}.csv")
        got = fine(call("tell", f"clicks{day}.csv", *(["--extras", extras] if extras == "spend" else [])))
        assert "answer trials that were out, 1 go beyond them" in got or "0 go beyond them" in got
        beyond += "1 go beyond them" in got
        assert "0 new" in fine(call("tell", f"clicks{day}.csv"))
    now = state("ads")
    assert (now.used, now.over) == (6000, True)
    assert now.total == 6000 + (beyond if extras == "free" else 0)
    assert "A5" in call("best").stdout


def test_a_file_of_totals_so_far_is_told_every_day_under_its_name(call):
    write(ADS, "ads.csv")
    fine(
        call(
            "create-study",
            "ads",
            "--arms",
            "ads.csv",
            "--id",
            "ad",
            "--model",
            "logistic",
            "--budget",
            900,
            "--batch",
            300,
            "--seed",
            1,
        )
    )
    fine(call("ask", "--by", "arm", "-o", "day1.csv"))
    write("arm,successes,trials\nA1,1,50\nA2,2,50\n", "clicks.csv")
    assert "100 new" in fine(call("tell", "clicks.csv", "--cumulative"))
    write("arm,successes,trials\nA1,2,50\nA2,2,60\nA3,0,5\n", "clicks.csv")
    wrong = refused(call("tell", "clicks.csv", "--cumulative"))
    assert "with --cumulative a file only grows" in wrong
    write("arm,successes,trials\nA1,2,51\nA2,2,60\nA3,0,5\n", "clicks.csv")
    asked = refused(call("tell", "clicks.csv"))
    assert all(way in asked for way in ("--correct", "--cumulative", "--as NAME"))
    assert "16 new, 100 known already" in fine(call("tell", "clicks.csv", "--cumulative"))
    write("ad,successes,trials\nA1,2,51\nA2,2,60\nA3,1,6\n", "clicks.csv")  # as the table of arms calls them
    assert "1 new, 116 known already" in fine(call("tell", "clicks.csv", "--cumulative"))
    assert state("ads").sums[:3] == [2.0, 2.0, 1.0]


def read_out(path, out, chance, failed=()):
    """Fill in the coloured column of a workbook as a plate reader's owner does."""
    book = openpyxl.load_workbook(path)
    sheet = book.active
    head = [cell.value for cell in sheet[1]]
    sheet.cell(1, len(head) + 1).value = "failed"
    for row in range(2, sheet.max_row + 1):
        cell = sheet.cell(row, head.index("reward") + 1)
        assert cell.value is None
        assert cell.fill.fgColor.rgb.endswith("FFF2CC")
        if sheet.cell(row, 2).value in failed:
            sheet.cell(row, len(head) + 1).value = "bubble"
        else:
            cell.value = sheet.cell(row, head.index("dose") + 1).value + chance.random()
    book.save(out)


def test_a_plate_assay_in_workbooks_with_a_failed_well(call):
    write("code,dose,enzyme\n" + "".join(f"{i:04d},{i % 5},{'AB'[i % 2]}\n" for i in range(1, 21)), "conditions.csv")
    said = fine(
        call(
            "create-study",
            "assay",
            "--arms",
            "conditions.csv",
            "--id",
            "code",
            "--budget",
            288,
            "--plate",
            96,
            "--seed",
            7,
        )
    )
    assert "next: bestarm ask -o plate1.xlsx" in said
    chance = random.Random(2)
    said = fine(call("ask", "-o", "plate1.xlsx"))
    assert "plate 1: the study's seed, 7, drew which trial is in which well" in said
    sheet = openpyxl.load_workbook("plate1.xlsx").active
    head, *lines = sheet.iter_rows(values_only=True)
    assert head == ("plate", "well", "trial", "arm", "dose", "enzyme", "reward")
    assert [line[1] for line in lines] == wells(96)
    assert [line[2] for line in lines] != sorted(line[2] for line in lines)
    assert all(isinstance(line[3], str) and len(line[3]) == 4 for line in lines)
    arm = next(line[3] for line in lines if line[1] == "C5")
    read_out("plate1.xlsx", "plate1_read.xlsx", chance, failed=["C5"])
    assert "95 new, 0 known already, 0 corrected, 0 blank, 1 failed" in fine(call("tell", "plate1_read.xlsx"))
    fine(call("ask", "-o", "plate2.xlsx"))
    now = state()
    assert sum(now.plates.values()) == 96 + 2 * 96
    assert arm in {now.ids[now.arm_of(trial)] for trial in now.plates if now.plates[trial] == 2}  # the repeat
    assert now.used == 191
    # a reader's own file: wells alone, in its own spelling
    lines = [f"{well[0]}{int(well[1:]):02d};{chance.random():.3f}".replace(".", ",") for well in wells(96)]
    write("Well;reward\n" + "\n".join(lines) + "\n", "reader.csv")
    assert "column 'plate', or --plate, says which" in refused(call("tell", "reader.csv"))
    assert "96 new" in fine(call("tell", "reader.csv", "--plate", 2))
    fine(call("ask", "-o", "plate3.csv"))
    table = rows(Path("plate3.csv").read_text())
    assert [(row["plate"], row["well"]) for row in table] == [("3", well) for well in wells(96)]
    write("plate,well,reward\n" + "".join(f"3,{row['well']},{row['dose']}\n" for row in table), "plate3_read.csv")
    assert "96 new" in fine(call("tell", "plate3_read.csv"))
    assert state().used == 287
    assert call("best").exit_code == 0


def test_a_workbook_without_its_library_names_the_extra_and_hands_nothing_out(assay, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "openpyxl", None)
    before = state().records
    said = refused(assay("ask", "-o", "next.xlsx"))
    assert "pip install 'bestarm-bai[excel]'" in said
    assert ".csv" in said
    assert state().records == before


def test_plates_are_of_sizes_that_are_made_or_of_rows_and_columns(call):
    create = ("--arms", "arms.csv", "--id", "code", "--exclude", "batch no", "--budget", 100)
    fine(call("create-study", "a", *create, "--plate", "4x6", "--seed", 1))
    assert (state("a").options["plate"], state("a").options["batch"]) == ([4, 6], 24)
    fine(call("create-study", "b", *create, "--plate", "96", "--batch", "90", "--seed", 1))
    assert state("b").options["batch"] == 90
    assert "a number of wells, 6, 12, 24, 48, 96, 384, 1536, or ROWSxCOLUMNS" in refused(
        call("create-study", "c", *create, "--plate", "95")
    )
    assert "does not fit on a plate of 24 wells" in refused(
        call("create-study", "c", *create, "--plate", "24", "--batch", "25")
    )


def test_a_sorted_column_of_wells_is_found_and_what_is_in_no_well_is_named(call):
    fine(
        call(
            "create-study",
            "a",
            "--arms",
            "arms.csv",
            "--id",
            "code",
            "--exclude",
            "batch no",
            "--budget",
            30,
            "--plate",
            "2x3",
            "--seed",
            3,
        )
    )
    fine(call("ask", "-o", "p.csv"))
    table = rows(Path("p.csv").read_text())
    lines = "".join(f"{row['well']},{other['trial']},1\n" for row, other in zip(table, table[::-1], strict=True))
    assert "column 'well': trial" in refused(call("tell", write("well,trial,reward\n" + lines, "moved.csv")))
    wrong = refused(call("tell", write("well,reward\nA1,1\nC1,2\nA9,\n", "more.csv")))
    assert "line 3, column 'well': nothing was asked for in well 'C1'; leave blank what is not to be told" in wrong
    assert "A9" not in wrong
    assert "1 new" in fine(call("tell", write("well,reward\nA1,1\nC1,\n", "more.csv")))
