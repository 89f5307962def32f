"""What people read says no more than is known, and is the same wherever it is printed."""

import numpy as np
import pytest
from click.testing import CliRunner

from bestarm import create_study
from bestarm.answer import wording
from bestarm.cli import main


@pytest.mark.parametrize(
    ("chance", "said"), [(1.0, "over 99.9 %"), (0.999, "99.9 %"), (0.5, "50 %"), (0.0, "under 0.1 %")]
)
def test_no_number_of_draws_makes_an_answer_certain(chance, said):
    assert wording.facts({"p_best": chance}) == {"p best": said}


def test_an_answer_is_printed_as_a_notebook_shows_it(tmp_path):
    study = create_study(np.eye(2), 12, study_name="s", storage=tmp_path / "log", seed=1)
    study.import_results([("1", 2.0), ("2", -9.0), ("1", 2.1), ("2", -9.1)] * 5)
    printed = CliRunner().invoke(main, ["best", "--storage", str(tmp_path / "log")]).stdout
    shown = study.recommend()._repr_html_()
    for name, said in wording.facts(study.recommend().row()).items():
        assert f"\n{name} " in f"\n{printed}"
        assert f">{name}</th><td>{said}</td>" in shown
        assert said in printed
    assert "p best           over 99.9 %" in printed


def test_lines_of_a_table_are_aligned():
    rows = [{"arm": "a", "mean": 1.5}, {"arm": "long", "mean": -2}]
    assert wording.aligned(rows) == ["arm   mean", "a     1.5", "long  -2"]
    assert wording.aligned(rows, ">") == [" arm  mean", "   a   1.5", "long    -2"]
