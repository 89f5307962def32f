"""Small things that stop people: help, completion, words as they were typed, notes, silence, Ctrl-C."""

import logging

import pytest
from click.testing import CliRunner

from bestarm.cli import main
from bestarm.cli.app import as_typed
from tests.cli.commands import CREATE, fine, refused, state, write

ADS = "name,size,kind,tone,rate\nred,1,a,x,0.1\nblue,2,b,x,0.3\ngreen,4,a,y,0.2\nblack,3,b,y,0.5\n"
SIMULATED = ("--simulate", "rate", "--noise-variance", 0.01, "--budget", 40, "--seed", 1)


@pytest.fixture
def ads(call):
    write(ADS, "ads.csv")
    return call


def test_help_is_a_command_too(call):
    assert call("help").stdout == call("--help").stdout
    assert call("help", "tell").stdout == call("tell", "--help").stdout
    assert "no such command 'tel'; `bestarm help` lists them" in refused(call("help", "tel"), 2)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_each_shell(call, shell):
    assert "_BESTARM_COMPLETE" in call("completion", shell).stdout
    done = CliRunner().invoke(
        main, [], prog_name="bestarm",
        env={"_BESTARM_COMPLETE": "zsh_complete", "COMP_WORDS": "bestarm create-s", "COMP_CWORD": "1"},
    )  # fmt: skip
    assert "create-study" in done.output
    assert "tell" not in done.output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--noise-variance", "-1"), "--noise-variance must"),
        (("--exclude", "name", "--label", "nme"), "unknown column 'nme'"),
        (("--policy", "linucb", "--noise-variance", "nan"), "--noise-variance"),
    ],
)
def test_options_are_named_as_they_are_typed(ads, words, says):
    done = ads("run", "ads.csv", *SIMULATED, *words)
    assert says in done.stderr
    assert "noise_variance" not in done.stderr


def test_arguments_of_python_become_options():
    with main.commands["run"].make_context("run", ["ads.csv", "--budget", "9"]):
        assert as_typed("noise_variance must not be -1") == "--noise-variance must not be -1"
        assert as_typed("use scale='none', or id= it") == "use --scale none, or --id it"
        assert as_typed("the budget must be a number; n_jobs too") == "--budget must be a number; --jobs too"
        for same in ("column 'noise_variance' of my_noise_variance", "the budget of the study is spent"):
            assert as_typed(same) == same
    with main.commands["create-study"].make_context("c", ["s", "--storage", "x.db"]):
        said = "load it (load_if_exists=True, --if-exists load), delete it"
        assert as_typed(said) == "load it (--if-exists load), delete it"
    with main.commands["upgrade"].make_context("u", ["--storage", "x.db"]):
        said = "say where the copy goes, as in copy='before.jsonl' or --copy; raise_budget changes it"
        assert as_typed(said) == "say where the copy goes, as in --copy before.jsonl; raise-budget changes it"
    assert as_typed("noise_variance") == "noise_variance"


def test_a_missing_file_is_said_as_missing(call):
    simulated = ("run", "ad.csv", *SIMULATED)
    planned = ("plan", "ad.csv", "--gap", 1, "--noise-variance", 1)
    begun = ("create-study", "s", "--arms", "ad.csv", "--budget", 9)
    for words in (simulated, planned, ("design", "ad.csv", "--pulls", 9), begun):
        assert refused(call(*words)) == "Error: ad.csv cannot be read: No such file or directory\n"


def test_no_folder_is_made_silently(ads, tmp_path):
    for words in (("--report", "new/x.html"), ("--log", "new/x.jsonl")):
        said = refused(ads("run", "ads.csv", *SIMULATED, *words), 2)
        assert f"Error: {words[0]}: {words[1]} cannot be written: there is no folder new; mkdir -p new makes it" in said
    fine(ads("create-study", "s", "--arms", "ads.csv", "--id", "name", "--budget", 9))
    for words in (("ask", "-o", "new/x.csv"), ("trials", "-o", "new/x.csv"), ("report", "-o", "new/x.html")):
        assert "there is no folder new" in refused(ads(*words))
    assert state("s").used == 0
    assert not (tmp_path / "new").exists()


def test_nothing_is_begun_that_cannot_be_simulated(ads, tmp_path):
    said = refused(ads("run", "ads.csv", "--simulate", "rate", "--budget", 9, "--log", "x.jsonl"))
    assert "simulated rewards need --noise-variance" in said
    assert not (tmp_path / "x.jsonl").exists()


def test_what_people_overlook_is_noted(ads):
    said = fine(ads("create-study", "s", "--arms", "ads.csv", "--budget", 9, "--batch", 96))
    assert "called by their row, 1 to 4; column 'name' has another text in each: --id name calls them so" in said
    assert "a batch of 96 is above the whole budget of 9" in said
    said = fine(ads("create-study", "t", "--arms", "ads.csv", "--id", "name", "--budget", 9, "--batch", 3))
    assert "called by their row" not in said
    assert "batch" not in said.partition("next:")[0]
    out = fine(ads("ask", "-s", "t", "-n", 12, "-o", "x.csv"))
    assert "12 were asked for: the round has no more until its results are told" in out


def test_the_rank_that_categories_lose_is_not_spoken_of(ads):
    kinds = ("--id", "name", "--exclude", "rate")
    assert "combinations" not in fine(ads("create-study", "s", "--arms", "ads.csv", *kinds, "--budget", 9))
    write("name,x,y,kind\na,1,2,u\nb,2,4,v\nc,4,8,u\nd,3,6,v\ne,9,18,u\n", "twice.csv")
    said = fine(ads("create-study", "t", "--arms", "twice.csv", "--id", "name", "--budget", 9))
    assert "some features are combinations of others" in said


def test_one_is_one(call):
    write("code,x\nA,1\n", "one.csv")
    said = fine(call("create-study", "s", "--arms", "one.csv", "--id", "code", "--budget", 1, "--policy", "uniform"))
    assert "1 arm, 1 feature, rank 1" in said


def test_quiet_says_the_answer_and_what_to_be_wary_of(ads):
    words = ("run", "ads.csv", "--id", "name", *SIMULATED, "--policy", "gse-lin-fwg")
    loud, quiet, before = ads(*words), ads(*words, "-q"), ads("-q", *words)
    assert "4 arms" in fine(loud)
    assert quiet.stdout == before.stdout == loud.stdout
    assert quiet.stderr == before.stderr
    assert quiet.stderr in loud.stderr
    assert "4 arms" not in quiet.stderr
    assert "Error" in refused(ads("run", "none.csv", *SIMULATED, "-q"))


def test_verbose_says_what_is_tried_again(ads, tmp_path):
    (tmp_path / "measure").write_text('#!/bin/sh\ntest -f "$1" && echo 1 || { touch "$1"; exit 3; }\n')
    (tmp_path / "measure").chmod(0o755)
    pulled = ("--pull", "./measure {id}", "--retries", 1)
    words = ("run", "ads.csv", "--id", "name", "--exclude", "rate", "--budget", 4, "--policy", "uniform", *pulled)
    before = logging.getLogger("bestarm").level
    assert "tried again" in fine(ads(*words, "-v"))
    for name in ("red", "blue", "green", "black"):
        (tmp_path / name).unlink()
    assert "tried again" not in fine(ads(*words))
    assert logging.getLogger("bestarm").level == before


def test_progress_says_what_is_spent_and_who_is_ahead(ads, monkeypatch):
    for name in ("SILENT", "SELDOM"):
        monkeypatch.setattr(f"bestarm.progress.{name}", 0.0)
    monkeypatch.setattr("bestarm.study.watching.GUESS", (0.0, 0.0))
    words = ("run", "ads.csv", "--id", "name", *SIMULATED)
    said = fine(ads(*words))
    assert "40 of 40 pulls, " in said
    assert "; ahead: black, " in said
    assert "of 40 pulls" not in fine(ads(*words, "-q"))
    fine(ads("create-study", "s", "--arms", "ads.csv", "--id", "name", "--exclude", "rate", "--budget", 9))
    assert "9 of 9 pulls" in fine(ads("run-study", "--pull", "echo 1 # BESTARM_ID"))
    assert "results looked back on" in fine(ads("report"))
    words = ("--gap", 1, "--noise-variance", 1, "--budget", 20, "--replications", 20, "--jobs", 1)
    assert "runs, " in fine(ads("plan", "ads.csv", "--id", "name", "--exclude", "rate", *words))


PLAN = ("plan", "ads.csv", "--gap", 1, "--noise-variance", 1, "--seed", 4)
BENCH = ("bench", "static", "--budget", 9, "--policy", "uniform")
STOPPED = {
    "plan": (PLAN, "cli.plan.make_plan", "nothing is kept of a plan; --seed 4 gives the same numbers"),
    "bench": (BENCH, "cli.bench.run_grid", "nothing is kept of it; with -o FOLDER the next run could go on"),
    "bench -o": ((*BENCH, "-o", "kept"), "cli.bench.run_grid", "is kept in kept; the same command goes on from there"),
    "reproduce": (("reproduce", "--quick"), "bench.reproduce.reproduce", "is kept in results/reproduction"),
    "design": (("design", "ads.csv", "--pulls", 9), "cli.design.find_design", "nothing is written"),
    "report": (("report", "-s", "assay"), "study.study.Study.report", "report.html is not written; run again"),
    "best": (("best", "-s", "assay"), "study.study.Study.recommend", "6 results kept, 0 trials out; nothing is half"),
    "create": (("create-study", "s", *CREATE, "--budget", 9), "cli.studies.create_study", "begun whole or not at all"),
    "copy": (("copy-study", "assay", "--to", "c.jsonl"), "cli.studies.copy_study", "finishes the copy"),
    "run": (("run", "ads.csv", *SIMULATED), "cli.run.make", "0 of 40 spent, 0 results kept, 0 trials out; with --log"),
    "policies": (("policies",), "catalog.listed", "nothing was changed"),
}


@pytest.mark.parametrize("case", STOPPED)
def test_ctrl_c_says_what_is_kept_and_how_to_go_on(assay, monkeypatch, case):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    write(ADS, "ads.csv")
    words, where, says = STOPPED[case]
    monkeypatch.setattr(f"bestarm.{where}", stopped)
    done = assay(*words)
    assert done.exit_code == 130
    assert done.stderr.count("stopped: ") == 1
    assert says in done.stderr
    assert "Aborted" not in done.output


def test_a_page_without_matplotlib_is_made_and_a_picture_refused_before_the_first_pull(ads, tmp_path, monkeypatch):
    for module in ("draw.style", "study.report", "cli.plan"):
        monkeypatch.setattr(f"bestarm.{module}.can_draw", lambda: False)
    said = refused(ads("run", "ads.csv", "--id", "name", *SIMULATED, "--report", "x.png", "--log", "x.jsonl"), 2)
    assert "a .png report needs matplotlib" in said
    assert not (tmp_path / "x.jsonl").exists()
    fine(ads("run", "ads.csv", "--id", "name", *SIMULATED, "--report", "x.html"))
    assert 'class="chart"' in (tmp_path / "x.html").read_text()
    said = refused(ads("plan", "ads.csv", "--gap", 1, "--noise-variance", 1, "--plot", "p.png"), 2)
    assert "--plot needs matplotlib" in said
