"""Results put right from the command line: every command as a person types it, what it says, and what it leaves."""

import json

from bestarm.study import open_storage
from tests.cli.commands import CREATE, fine, refused, rows, state, told, write


def test_the_study_is_the_named_one_else_the_environments_else_the_only_one(assay, monkeypatch):
    fine(assay("create-study", "other", *CREATE, "--budget", 30))
    assert "say which study by -s or BESTARM_STUDY; there are assay, other" in refused(assay("trials"), 2)
    assert len(rows(assay("trials", "-s", "assay", "-f", "csv").stdout)) == 6
    monkeypatch.setenv("BESTARM_STUDY", "assay")
    assert len(rows(assay("trials", "-f", "csv").stdout)) == 6
    assert "nothing was asked yet" in fine(assay("trials", "--study-name", "other"))
    assert "unknown study 'asay'; the nearest are assay" in refused(assay("trials", "-s", "asay"))
    monkeypatch.delenv("BESTARM_STUDY")
    assert "there is no study in nowhere.jsonl" in refused(assay("best", "--storage", "nowhere.jsonl"))


def test_trials_are_listed_in_three_formats_with_zoned_times(assay, tmp_path):
    table = assay("trials").stdout.splitlines()
    assert table[0].split() == ["trial", "arm", "value", "state", "time", "source", "count", "why", "corrections"]
    assert table[1].split()[:4] == ["T0001", "A", "1.0", "told"]
    assert table[1].split()[4].endswith("+00:00")
    found = json.loads(assay("trials", "-f", "json").stdout)
    assert [row["value"] for row in found] == [1, 2, 3, 4, 5, 6]
    assert {row["source"] for row in found} == {"ann"}
    fine(assay("trials", "-o", "out.csv"))
    assert [row["trial"] for row in rows((tmp_path / "out.csv").read_text())] == [f"T000{i}" for i in range(1, 7)]
    fine(assay("trials", "--out", "out.json"))
    assert json.loads((tmp_path / "out.json").read_text()) == found


def test_an_empty_study_has_no_trials_in_any_format(call):
    fine(call("create-study", "new", *CREATE, "--budget", 24))
    assert call("trials").stdout == ""
    assert json.loads(call("trials", "-f", "json").stdout) == []
    assert rows(call("trials", "-f", "csv").stdout) == []


def test_another_value_holds_and_negative_ones_are_values(assay):
    said = fine(assay("amend", "T0001", "-1.5", "--why", "sign", "--who", "eve"))
    assert "trial T0001 of arm 'A' is -1.5 now, it was 1" in said
    assert "`bestarm undo 3` takes that back" in said
    assert state().results[1].sum == -1.5
    row = json.loads(assay("trials", "-f", "json").stdout)[0]
    assert (row["value"], row["why"], row["corrections"]) == (-1.5, "sign", "amend (record 3)")
    record = open_storage("s.jsonl").read("assay")[3]
    assert (record["source"], record["why"]) == ("eve", "sign")
    assert "is -1.5 already" in fine(assay("amend", "1", "-15e-1", "--why", "again"))
    assert "write a decimal point" in refused(assay("amend", "T1", "1,5", "--why", "x"), 2)
    assert "a number within" in refused(assay("amend", "T1", "nan", "--why", "x"))
    assert "trial T0099 was never asked for" in refused(assay("amend", "T0099", "1", "--why", "x"))
    assert "'--why'" in refused(assay("amend", "T0001", "1"), 2)
    refused(assay("amend", "T0001", "1", "--whi", "x"), 2)


def test_results_are_excluded_by_name_by_range_and_by_what_they_have_in_common(assay):
    said = fine(assay("exclude", "T0001", "T3-T0005", "--why", "wrong buffer"))
    assert "4 results excluded; 2 count, 6 of 24 spent" in said
    assert [one.name for one in state().told if one.excluded] == [1, 3, 4, 5]
    fine(assay("undo"))
    assert state().total == 6
    assert "2 results excluded" in fine(assay("exclude", "--arm", "A", "--source", "ann", "--why", "foam"))
    assert "4 results excluded" in fine(assay("exclude", "--since", "2020-01-01T00:00+00:00", "--why", "all of it"))
    assert "0 results excluded" in fine(assay("exclude", "--arm", "A", "--why", "foam"))
    assert "2 results restored; 2 count" in fine(assay("restore", "T1", "T2", "--why", "no foam"))
    assert "no result is of the source 'bob'; there are 'ann'" in refused(
        assay("exclude", "--source", "bob", "--why", "x")
    )
    assert "name the trials, or an arm" in refused(assay("exclude", "--why", "x"))
    assert "not both" in refused(assay("exclude", "T0001", "--arm", "A", "--why", "x"))
    assert "a time such as" in refused(assay("exclude", "--since", "tuesday", "--why", "x"))
    assert "there are 6 so far" in refused(assay("exclude", "T5-T9", "--why", "x"))
    assert "there are 6 so far" in refused(assay("exclude", "T5-T3", "--why", "x"))
    assert "there are 6 so far" in refused(assay("exclude", "T1-T999999999999999", "--why", "x"))


def test_what_is_excluded_is_measured_again_only_where_that_is_said(assay):
    fine(assay("exclude", "T0001", "--why", "leak"))
    assert state().used == 6
    assert "asked again" in fine(assay("exclude", "T0002", "--why", "leak", "--again"))
    assert state().used == 5
    assert "restore the results instead" in refused(assay("undo", 4))


def test_extra_results_are_corrected_by_their_ids(assay):
    fine(assay("tell", write("id,arm,reward\nlab-7,B,3\n", "extra.csv")))
    assert "result 'lab-7' of arm 'B' is 4 now, it was 3" in fine(assay("amend", "lab-7", "4", "--why", "x"))
    fine(assay("exclude", "lab-7", "--why", "x"))
    assert state().total == 6
    assert "unknown result 'lab-8'; the nearest are lab-7" in refused(assay("restore", "lab-8"))


def test_an_arm_is_withdrawn_and_comes_back(assay):
    assert "arm 'B' is withdrawn; 4 arms are in the race" in fine(assay("withdraw", "B", "--why", "cannot be made"))
    assert "withdrawn already" in fine(assay("withdraw", "B", "--why", "cannot be made"))
    assert "record 3 is undone: withdraw of B" in fine(assay("undo"))
    assert "nothing to undo" in refused(assay("undo"))
    assert "is undone already" in refused(assay("undo", 3))
    assert "is nothing that can be undone" in refused(assay("undo", 10**20))
    assert "unknown arm 'Z'" in refused(assay("withdraw", "Z", "--why", "x"))


def test_trials_that_are_not_waited_for_any_more_are_said(assay):
    fine(assay("ask", "-o", "b.csv"))
    said = fine(assay("withdraw", "B", "--why", "cannot be made"))
    assert "6 trials that are out are not waited for: tell what comes, it counts" in said
    fine(assay("tell", write("trial,reward\nT0007,4\n", "late.csv")))
    assert state().results[7].sum == 4
    fine(assay("ask", "-n", 1))
    assert "1 trial that is out is not waited for" in fine(assay("undo"))
    assert "not waited for" not in fine(assay("finish", "--why", "enough"))


def test_an_undone_value_is_said_with_its_reason(assay):
    fine(assay("amend", "T0002", 20, "--why", "typo"))
    assert "record 3 is undone: amend of trial T0002, which is 2 again (its reason was: typo)" in fine(assay("undo"))


def test_a_study_that_was_finished_by_hand_says_so_to_whoever_asks(assay):
    fine(assay("finish", "--why", "enough"))
    fine(assay("withdraw", "A", "--why", "gone"))
    again = "it was finished by hand; `bestarm undo 3` takes that back"
    assert again in fine(assay("ask"))
    assert again in fine(assay("raise-budget", 30))
    fine(assay("undo", 3))
    assert "next: bestarm ask" in fine(assay("raise-budget", 36))
    assert len(rows(assay("ask").stdout)) == 6


def test_what_is_to_be_typed_next_names_what_was_named(assay):
    assert "next: bestarm ask -o batch1.csv -s other" in fine(assay("create-study", "other", *CREATE, "--budget", 30))
    said = fine(assay("amend", "T0002", 20, "--why", "typo", "-s", "assay"))
    assert "`bestarm undo 3 -s assay` takes that back" in said
    said = fine(assay("ask", "-o", "a b.csv", "-s", "assay", "--storage", "./s.jsonl"))
    assert (
        "next: fill in the column reward of a b.csv, then bestarm tell 'a b.csv' -s assay --storage ./s.jsonl" in said
    )


def test_a_corrected_file_says_how_all_of_it_is_taken_back(assay):
    text = "trial,reward,failed\nT0001,10,\nT0002,,spilt\n"
    said = fine(assay("tell", write(text, "new.csv"), "--correct"))
    assert "0 new, 0 known already, 2 corrected" in said
    assert "`bestarm undo 4` and `bestarm undo 3` take that back" in said
    fine(assay("undo"))
    fine(assay("undo"))
    assert [one.sum for one in state().told if not one.excluded] == [1, 2, 3, 4, 5, 6]


def test_a_study_is_finished_and_goes_on(assay):
    assert "the study is finished: 6 of 24 spent" in fine(assay("finish", "--why", "good enough"))
    assert "finished already" in fine(assay("finish", "--why", "good enough"))
    done = assay("ask")
    assert "the study is over" in fine(done)
    assert done.stdout == ""
    assert "finished by hand; `bestarm undo " in fine(assay("best"))
    assert json.loads(assay("best", "-f", "json").stdout)["finished"] is True
    assert "is undone: finish" in fine(assay("undo"))
    assert len(rows(assay("ask").stdout)) == 6


def test_what_was_asked_by_mistake_is_handed_back(assay):
    fine(assay("ask", "-n", 4, "-o", "more.csv"))
    said = fine(assay("hand-back", "T0007-T0009", "T10", "--why", "asked twice"))
    assert "4 trials handed back; 6 of 24 spent, 0 trials out" in said
    assert "0 trials handed back" in fine(assay("hand-back", "T0007"))
    assert "has a result: exclude it" in refused(assay("hand-back", "T0001"))
    assert {row["state"] for row in json.loads(assay("trials", "-f", "json").stdout)[6:]} == {"handed back"}


def test_trials_fail_with_or_without_a_refund(assay):
    fine(assay("ask", "-n", 3, "-o", "more.csv"))
    assert "1 trial failed; 8 of 24 spent, 2 trials out" in fine(assay("fail", "T0007", "--why", "spilt"))
    assert "1 trial failed; 8 of 24 spent" in fine(assay("fail", "8", "--why", "spilt", "--no-refund"))
    said = fine(assay("fail", "T0001", "T0007", "--why", "spilt"))
    assert "trial T0001 has a result, so it has not failed" in said
    assert "0 trials failed" in said
    assert [row["why"] for row in json.loads(assay("trials", "-f", "json").stdout)[6:8]] == ["spilt", "spilt"]
    refused(assay("fail", "T0009", "T0099", "--why", "spilt"))
    assert not state().is_out(7)
    assert state().is_out(9)


def test_a_round_is_closed_without_what_is_still_out(assay):
    fine(assay("ask", "-n", 2, "-o", "more.csv"))
    assert "the round is closed without 2 answers" in fine(assay("close-round", "--why", "lost"))
    assert "no round is open" in fine(assay("close-round"))
    assert "2 new" in fine(assay("tell", told("more.csv", (7, 8))))


def test_the_budget_is_raised(assay):
    assert "the budget is 30, it was 24; 6 of 30 spent" in fine(assay("raise-budget", 30))
    assert "a larger one is expected" in refused(assay("raise-budget", 20))
    assert "beyond what a study can plan" in refused(assay("raise-budget", "1e30"))
    for bad in ("nan", "inf", "-5"):
        refused(assay("raise-budget", bad))


def test_arms_of_another_table_join_the_race(assay):
    more = write("batch no,acid,code,temp\nx9,0.7,F,1\nx9,0.6,G,2\n", "more.csv")
    said = fine(assay("add-arms", more, "--why", "two more"))
    assert "2 arms added, F, G" in said
    assert "7 arms are in the race" in said
    assert state().ids == list("ABCDEFG")
    assert state().features[5] == [1.0, 0.7]
    assert "arm 'F' is in the study already" in refused(assay("add-arms", more))
    assert "unknown column 'acid'" in refused(assay("add-arms", write("code,temp\nH,1\n", "less.csv")))
    assert "row 1 (line 2), column 'acid'" in refused(assay("add-arms", write("code,temp,acid\nH,1,?\n", "hole.csv")))
    assert "nowhere.csv" in refused(assay("add-arms", "nowhere.csv"))


def test_added_arms_have_costs_where_the_others_do_and_numbers_where_the_others_do(call):
    write("temp,price\n1,2\n2,1\n4,0.5\n", "priced.csv")
    fine(call("create-study", "p", "--arms", "priced.csv", "--cost", "price", "--budget", 20, "--model", "means"))
    fine(call("add-arms", write("price,temp\n0.25,3\n", "more.csv")))
    assert (state("p").ids, state("p").cost) == (["1", "2", "3", "4"], [2, 1, 0.5, 0.25])
    assert "unknown column 'price'" in refused(call("add-arms", write("temp\n3\n", "free.csv")))
    fine(call("add-arms", write("temp,euro\n5,1\n", "euro.csv"), "--cost", "euro"))


def test_a_file_that_contradicts_the_log_is_shown_as_a_table_and_nothing_of_it_is_kept(assay):
    fine(assay("ask", "-n", 1, "-o", "next.csv"))
    both = told("batch.csv", (1, 2.5, 3, 4, 5, 6.5), "again.csv")
    with open(both, "a") as file:
        file.write("T0007,,,,,9\n")
    done = assay("tell", both)
    said = refused(done)
    table = [line.split() for line in done.stdout.splitlines()]
    assert table == [["trial", "arm", "old", "new"], ["T0002", "B", "2.0", "2.5"], ["T0006", "A", "6.0", "6.5"]]
    assert "again.csv contradicts the log: 2 results differ" in said
    assert "nothing of the file was kept; --correct" in said
    assert state().total == 6
    assert json.loads(assay("tell", both, "-f", "json").stdout)[0] == {
        "trial": "T0002", "arm": "B", "old": 2.0, "new": 2.5
    }  # fmt: skip
    said = fine(assay("tell", both, "--correct", "--why", "recalibrated"))
    assert "1 new, 4 known already, 2 corrected, 0 blank, 0 failed" in said
    assert [state().results[trial].sum for trial in (2, 6, 7)] == [2.5, 6.5, 9]
    assert json.loads(assay("trials", "-f", "json").stdout)[1]["why"] == "recalibrated"


def test_a_file_by_arm_that_changed_is_refused_and_three_ways_lead_on(assay):
    fine(assay("tell", write("arm,reward\nB,1\nB,2\n", "plate.csv")))
    write("arm,reward\nB,1\nB,2\nC,3\n", "plate.csv")
    done = assay("tell", "plate.csv")
    for way in ("--correct", "--cumulative", "--as NAME"):
        assert way in refused(done)
    assert done.stdout.splitlines()[1].split()[1:] == ["C", "3.0"]
    assert state().total == 8
    assert "1 new, 2 known" in fine(assay("tell", "plate.csv", "--cumulative"))
    assert "3 new" in fine(assay("tell", "plate.csv", "--as", "second plate"))
    assert state().total == 12
    keyed = write("well,arm,reward\nA1,B,1\nA2,B,2\n", "keyed.csv")
    assert "2 new" in fine(assay("tell", keyed, "--key", "well", "--source", "reader"))
    assert "0 new, 2 known" in fine(assay("tell", keyed, "--key", "well"))
    assert "there is no column 'wall'" in refused(assay("tell", keyed, "--key", "wall"))


def test_readings_of_one_trial_are_refused_or_averaged(assay):
    fine(assay("ask", "-n", 1, "-o", "next.csv"))
    twice = write("trial,reward\nT0007,1\nT0007,2\n", "twice.csv")
    assert "--readings mean" in refused(assay("tell", twice))
    assert "1 new" in fine(assay("tell", twice, "--readings", "mean"))
    assert state().results[7].sum == 1.5


def test_imports_are_known_again_and_take_the_same_options(assay):
    old = write("arm,reward\nA,1\nB,2\n", "old.csv")
    assert "2 new" in fine(assay("import", old))
    assert "0 new, 2 known" in fine(assay("import", old))
    assert "1 new, 1 known already, 1 corrected" in fine(
        assay("import", write("arm,reward\nA,1.5\nB,2\nC,4\n", "old.csv"), "--correct")
    )
    assert state().used == 6


def test_values_far_from_all_others_are_kept_and_said(assay):
    fine(assay("ask", "-o", "next.csv"))
    said = fine(assay("tell", told("next.csv", (1, 2, 3, 4, 5, 6e9))))
    assert "far from all else" in said
    assert "bestarm amend T0012" in said
    assert state().total == 12
    assert "T0012" in fine(assay("best"))
    assert "T0012 of arm" in assay("doctor").stdout


def test_best_and_doctor_remind_of_what_was_set_aside(assay):
    fine(assay("exclude", "T0001", "T0002", "--why", "foam"))
    reminder = "excluded: trial T0001, trial T0002 (2 in all), the last because: foam; `bestarm restore`"
    assert reminder in fine(assay("best"))
    assert reminder in assay("doctor").stdout


def test_a_policy_that_failed_is_said_by_ask_best_and_doctor(assay, monkeypatch):
    def fails(self, state, rng):
        raise ZeroDivisionError("by nothing")

    fine(assay("create-study", "fresh", *CREATE, "--budget", 20, "--batch", 6))
    monkeypatch.setattr(type(state().policy), "ask", fails)
    monkeypatch.setenv("BESTARM_STUDY", "fresh")
    fine(assay("tell", write("arm,reward\nA,1\nB,2\n", "before.csv")))
    done = assay("ask")
    assert "policy failed: ZeroDivisionError: by nothing" in fine(done)
    assert "from here on arms are spread evenly" in done.stderr
    assert len(rows(done.stdout)) == 6
    assert "The policy failed" in fine(assay("best"))
    assert "the policy failed" in assay("doctor").stdout


def test_nothing_is_promised_to_be_undone_that_cannot_be(assay):
    assert "undo" not in fine(assay("exclude", "T0001", "--again", "--why", "x"))
    assert "undo" not in fine(assay("restore", "T0001"))
    assert "`bestarm undo" in fine(assay("exclude", "T0001", "--why", "x"))
    assert "`bestarm undo" in fine(assay("restore", "T0001"))


def test_of_a_range_those_with_a_result_are_excluded_and_the_others_named(assay):
    fine(assay("ask", "-n", 5))
    fine(assay("fail", "T0008", "--why", "spilt"))
    said = fine(assay("exclude", "T0005-T0011", "--why", "x"))
    assert "T0007, T0008, T0009 and 2 more have no result, and are passed over" in said
    assert "2 results excluded" in said
    assert "T0007 has no result, and is passed over" in fine(assay("restore", "T0005-T0007"))
    assert "T0007, T0008 have no result: there is nothing to put right" in refused(
        assay("exclude", "T0007-T0008", "--why", "x")
    )
    assert "trial T0007 has no result yet" in refused(assay("exclude", "T0006", "T0007", "--why", "x"))  # named itself
