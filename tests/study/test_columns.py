"""Files of results with other people's names for columns: understood where they can mean one thing, else refused."""

import pandas as pd
import pytest

from bestarm import create_study
from bestarm.errors import InputError
from bestarm.study.columns import Columns
from bestarm.study.files import tell_file
from bestarm.study.sheets import read_rows

ADS = [{"ad": "a1", "size": 1.0}, {"ad": "a2", "size": 2.0}, {"ad": "a3", "size": 4.0}]
KNOWN = Columns(ids="ad", own=("ad", "size"), arms=("a1", "a2", "a3"))


def ads(**settings):
    return create_study(ADS, id="ad", budget=60, policy="uniform", seed=1, batch=30, **settings)


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        ("ad,clicks,views", {"successes": "clicks", "trials": "views"}),
        ("Ad;Conversions;Impressions", {"successes": "Conversions", "trials": "Impressions"}),
        ("ad,passed,total", {"successes": "passed", "trials": "total"}),
        ("ad,wins,games", {"successes": "wins", "trials": "games"}),
        ("ad,clicks,n", {"successes": "clicks"}),
        ("ad,day,clicks,views", {"successes": "clicks", "trials": "views"}),
        ("ad,average,std,count", {"mean": "average", "n": "count", "sd": "std"}),
        ("ad,avg,n", {"mean": "avg"}),
        ("ad,score", {"reward": "score"}),
        ("trial,Value", {"reward": "Value"}),
        ("trial,arm,size,OD600", {"reward": "OD600"}),  # size is the arms' own
        ("prompt,reward", {"arm": "prompt"}),
        ("prompt,passed,total", {"arm": "prompt", "successes": "passed", "trials": "total"}),
        ("ad,successes,trials", {}),
        ("prompt,successes,trials,mean", {"arm": "prompt"}),
    ],
)
def test_what_people_call_columns_is_understood_and_said(header, taken):
    first = "T0001" if header.startswith("trial") else "a2"
    mark = ";" if ";" in header else ","
    numbers = ["3"] * header.count(mark)
    rows, notes = read_rows(f"{header}\n{mark.join([first, *numbers])}\n".encode(), "x.csv", KNOWN)
    assert "; ".join(notes) == "; ".join(f"column {it!r} is taken for {ours!r}" for ours, it in taken.items())
    assert rows[0].trial or rows[0].arm == "a2"
    assert rows[0].measured


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ("ad,clicks,conversions,views", "successes may be 'clicks' or 'conversions'; --column successes=COLUMN says"),
        ("ad,clicks,views,visitors", "trials may be 'views' or 'visitors'; --column trials=COLUMN says"),
        ("ad,value,n", "found 'ad, value, n'; --column reward=COLUMN says which column is meant"),
        ("ad,clicks,views,score", "--column reward=COLUMN says"),
        ("ad,absorbance", "found 'ad, absorbance'; --column reward=COLUMN"),
        ("ad,size", "found 'ad, size'"),
        ("trial,OD600,OD405", "reward may be 'OD600' or 'OD405'; --column reward=COLUMN says"),
        ("picture,reward", "found 'picture, reward'; --column arm=COLUMN"),
    ],
)
def test_what_may_mean_several_things_is_refused_with_the_option(header, says):
    first = "a2" if header.startswith("ad") else "T0001" if header.startswith("trial") else "face"
    line = ",".join([first, *["3"] * header.count(",")])
    with pytest.raises(InputError) as refusal:
        read_rows(f"{header}\n{line}\n".encode(), "x.csv", KNOWN)
    assert "x.csv, line 1: columns 'trial' (or 'arm') and 'reward' are expected, or " in str(refusal.value)
    assert says in str(refusal.value)


def test_two_columns_of_ids_are_not_chosen_between():
    with pytest.raises(InputError, match="arm may be 'won' or 'lost'"):
        read_rows(b"won,lost,reward\na1,a2,1\n", "x.csv", KNOWN)


def test_somebody_says_which_columns_are_meant():
    given = {"arm": "picture", "successes": " Clicks ", "trials": "visitors"}
    data = b"picture,clicks,conversions,visitors,trials\na1,4,1,10,x\n"
    rows, notes = read_rows(data, "x.csv", Columns(given))
    assert (rows[0].arm, rows[0].sums, rows[0].count) == ("a1", {"successes": "4"}, ("10", "trials"))
    assert notes == ()
    with pytest.raises(InputError, match="there is no column 'klicks'; there are picture, clicks"):
        read_rows(data, "x.csv", Columns({"successes": "klicks"}))
    with pytest.raises(InputError, match="one column cannot be 'successes' and 'mean'"):
        read_rows(data, "x.csv", Columns({"successes": "clicks", "mean": "clicks"}))
    with pytest.raises(InputError, match="there are 2 columns 'x'"):
        read_rows(b"arm,x,x\na1,1,2\n", "x.csv", Columns({"reward": "x"}))


def test_a_cell_that_is_no_number_is_named_by_the_file_s_own_column():
    study = ads()
    study.ask()
    with pytest.raises(InputError, match=r"c\.csv, line 3, column 'clicks': a number is expected; found 'many'"):
        tell_file(study, b"ad,clicks,views\na1,1,10\na2,many,10\n", "c.csv")
    with pytest.raises(InputError, match="line 2, column 'OD600'"):
        tell_file(study, b"ad,OD600\na1,<1\n", "c.csv", columns={"reward": "od600"})


def test_daily_counts_of_a_frame_are_told_as_they_are(caplog):
    study = ads(model="logistic")
    study.ask()
    days = pd.DataFrame({"ad": ["a1", "a2", "a1"], "clicks": [1, 2, 0], "views": [5, 10, 5]})
    with caplog.at_level("INFO", "bestarm"):
        assert study.tell(days) == 20
    assert "column 'clicks' is taken for 'successes'; column 'views' is taken for 'trials'" in caplog.messages
    assert (study.state.counts, study.state.sums) == ([10, 10, 0], [1, 2, 0])
    with pytest.raises(InputError, match="rename the column that is meant, 'reward'"):
        study.tell(pd.DataFrame({"ad": ["a1"], "rate": [0.5]}))
