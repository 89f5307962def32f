"""The catalog explains every policy, finds settings by the names they had, and reads parts of earlier versions."""

import math
from pathlib import Path

import pytest

from bestarm import catalog, spec
from bestarm.errors import InputError
from bestarm.policies.sequential import NoPulls

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", catalog.names())
def test_every_entry_is_explained(name):
    told, entry = catalog.explained(name), catalog.ENTRIES[name]
    assert eval(told["expression"], dict(spec._parts())) == entry.policy
    assert (ROOT / entry.page).exists()
    assert name in (ROOT / entry.page).read_text(encoding="utf-8")
    assert told["rewards"] in {"any", "0/1", "counts", "any, 0/1 as such"}
    assert any(character.isdigit() for character in entry.source)
    assert told["equation"].startswith(type(entry.policy).__name__)


# settings that catalog entries have had all along, as `bench` and `catalog.policy` take them
SETTINGS = {
    "auto": {"rounds": 10, "share": 0.2, "hedge": 0.1, "steps": 50, "refresh": 1.5, "rivals": 4},
    "gse-lin-fwg": {"eta": 3.0},
    "gse-pca-fwg": {"eta": 3.0},
    "bayesgap-lin": {"noise_variance": 0.1, "epsilon": 0.01},
    "lingape": {"delta": 0.1, "width": 0.5, "ridge": 0.5, "bound": 2.0, "noise_variance": 1.0},
    "linucb": {"noise_variance": 1.0},
    "ucb-glm": {"ridge": 1e-6, "steps": 5.0, "noise_variance": 0.25},
    "gp-thompson": {"share": 0.3},
    "top-two-lin": {"share": 0.3},
    "ocba": {"first": 10},
    "p1-rage": {"growth": 1.2, "levels": 8},
}


@pytest.mark.parametrize(
    ("name", "given"), [(name, {k: v}) for name, all_ in SETTINGS.items() for k, v in all_.items()]
)
def test_settings_are_found_in_the_parts_that_have_them(name, given):
    changed, (key, value) = catalog.policy(name, **given), *given.items()
    found = dict(spec.settings(changed))
    assert [found[where] for where in found if where.split(".")[-1] == key and found[where] == value]
    other = {where for where, now in spec.settings(catalog.policy(name)) if found.get(where) != now}
    assert {where.split(".")[-1] for where in other if not hasattr(found[where], "__dataclass_fields__")} == {key}


@pytest.mark.parametrize(
    ("text", "where", "value"),
    [("ocba:first=10", "first.first", 10), ("top-two-lin:share=0.3", "first.share", 0.3),
     ("lingape-greedy:width=0.5,delta=0.1", "rule.delta", 0.1), ("gse-lin-fwg:eta=3", "schedule.eta", 3.0)],
)  # fmt: skip
def test_settings_are_typed_by_their_own_name_alone(text, where, value):
    assert dict(spec.settings(catalog.policy_of_text(text)))[where] == value


def test_a_number_is_no_part_and_a_part_no_number():
    assert catalog.policy("ocba", first=NoPulls()).first == NoPulls()
    for wrong in ({"prior": 3.0}, {"eta": 3}, {"alpha": 1.0}):
        with pytest.raises(InputError, match="policy 'linucb' has no setting"):
            catalog.policy("linucb", **wrong)
    with pytest.raises(InputError, match="no setting 'eta'"):
        catalog.policy("auto", eta=3)  # that of what plays beyond many arms is its own business


def part(name, **settings):
    return {"part": name, **settings}


MATERN = part("Matern", nu=2.5, length=1.0)
EARLIER = {  # as versions up to 0.1 wrote them down
    "linucb": part("LinUCB", prior=part("LinearPrior", variance=1.0), radius=part("OfNoise", times=2.0, least=0.5),
                   answer=part("MostPulled"), width=part("Deviation"), noise_variance=None),
    "lingape": part("LinGapE", chooser=part("LeastRatio"), delta=0.99, width=1.0, ridge=1.0, bound=1.0,
                    noise_variance=None),
    "bayesgap-lin": part("BayesGap", prior=part("LinearPrior", variance=1.0), epsilon=0.001, first=part("EachIfCheap"),
                         confidence=part("Hoffman"), noise_variance=None),
    "ocba": part("OCBA", first=5, scatter=part("SampleVariances", prior=2.0), answer=part("BestEstimate")),
    "gp-thompson": part("Thompson", kernel=MATERN, share=0.2),
    "continuous-rejects-a": part("ContinuousRejects", rival=part("AverageOfOthers")),
    "successive-rejects": part("SuccessiveRejects"),
    "ucb-glm": part("UCBGLM", link=part("Logistic"), radius=part("Li2017", slope=0.25, delta=None),
                    exploration=part("RandomUntil", least=1.0, share=0.5), answer=part("MostPulled"),
                    width=part("Deviation"), ridge=1e-8, steps=3, noise_variance=None),
    "ucb-glm-azizi2021": part("UCBGLM", link=part("Logistic"), radius=part("Fixed", value=0.5),
                              exploration=part("Once"), answer=part("MostPulled"), width=part("Variance"), ridge=1e-8,
                              steps=3, noise_variance=None),
    "uniform": part("Elimination", model=part("Means"), design=part("Uniform"), eta={"number": "inf"},
                    memory=part("ThisStage"), measure=part("Survivors"), leftover=part("ToLastStages")),
    "od-linbai": part("Elimination", model=part("Linear"), schedule=part("YangTan"), design=part("Trimmed",
                      design=part("WolfeAtwood", tolerance=0.01, start=part("KumarYildirim"), limit=100_000))),
    "gse-lin-fwg-azizi2021": part("Elimination", model=part("Linear"), schedule=part("FloorHalving"), design=part(
                      "VertexDirection", step=part("LineSearch"), iterations=100, tolerance=0.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", EARLIER)
def test_policies_of_earlier_versions_are_read(name):
    assert spec.from_dict(EARLIER[name]) == catalog.policy(name)


def test_settings_that_nothing_depends_on_any_more_are_left_out():
    assert spec.from_dict(part("Auto", share=0.2, focus=3, doubting=0.5)) == catalog.policy("auto", share=0.2)


def test_rounds_of_whole_pulls_were_eliminations_of_their_own():
    design = spec.to_dict(catalog.policy("od-linbai").design)
    old = part(
        "CeilElimination", plan=part("YangTan"), design=design, surplus=part("ToLastRound"), model=part("Linear")
    )
    assert spec.from_dict(old) == catalog.policy("od-linbai-spend")
    old = part("CeilElimination", plan=part("FloorHalving", eta=3.0, leftover=part("ToLastStages")), design=design)
    assert spec.from_dict(old).schedule.eta == 3.0
    assert math.isinf(catalog.policy("uniform").eta)


def test_common_parts_are_where_they_are_looked_for():
    for home, names in spec.COMMON.items():
        for name in names.split():
            assert spec._parts()[name].__module__ == f"bestarm.{home}"
            assert spec._part(name) is spec._parts()[name]
