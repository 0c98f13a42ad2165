"""What a live bandit chooses from: labels, places and kernels."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from wgp_agents.live import LiveBandit
from wgp_agents.live.arms import Arms, Choices
from wgp_agents.live.choices import KnobGrid, Offers, choices_of
from wgp_agents.live.knobs import Knobs

MACHINE = Knobs(speed=(0, 300), depth=(1, 8, "int"), rate=(1e-4, 1, "log"), tool=["A", "B", "C"])


def test_knobs_stand_where_their_units_say_and_come_back_as_they_were_written() -> None:
    point = {"speed": 75.0, "depth": 4, "rate": 1e-2, "tool": "B"}
    place = MACHINE.place(point)
    np.testing.assert_allclose(place, [0.25, 3 / 7, 0.5, 0.5], rtol=1e-12)
    back = MACHINE.point(place)
    assert back["depth"] == 4
    assert isinstance(back["depth"], int)
    assert back["tool"] == "B"
    assert back["speed"] == pytest.approx(75.0)
    assert back["rate"] == pytest.approx(1e-2)


def test_knobs_fill_their_ranges_with_values_that_are_allowed() -> None:
    points = MACHINE.points(500)
    assert 400 < len(points) <= 500
    assert len({tuple(p.values()) for p in points}) == len(points)
    for point in points:
        MACHINE.place(point)  # refuses what is out of range
    assert {p["tool"] for p in points} == {"A", "B", "C"}
    assert {p["depth"] for p in points} == set(range(1, 9))
    rates = np.log([p["rate"] for p in points])
    assert np.median(rates) == pytest.approx(math.log(1e-2), abs=0.4)  # even by the logarithm


def test_knobs_with_few_values_are_all_there() -> None:
    few = Knobs(depth=(1, 8, "int"), tool=["A", "B"])
    assert len(few.points(500)) == 16


def test_the_kernel_of_knobs_is_a_product_with_shared_categories() -> None:
    kernel = Knobs(speed=(0, 300), tool=["A", "B"]).kernel()
    X = np.array([[0.0, 0.0], [0.2, 0.0], [0.0, 1.0], [0.2, 1.0]])
    near = math.exp(-0.5)  # one lengthscale of 0.2 apart
    expected = [1.0, near, 0.5, 0.5 * near]
    np.testing.assert_allclose(kernel(X[:1], X)[0], expected, rtol=1e-12)


@pytest.mark.parametrize(
    "bad",
    [
        (3, 1),
        (0, 1, "cubic"),
        (0, 1, "log"),
        (0.5, 3, "int"),
        "AB",
        [],
        3,
        ["A", "A"],
        (0, math.inf),
    ],
)
def test_a_range_that_is_none_is_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"The 'x' parameter of Knobs must be \(low, high\)"):
        Knobs(x=bad)


@pytest.mark.parametrize(
    ("point", "named"),
    [
        ({"speed": 400, "depth": 1, "rate": 0.1, "tool": "A"}, "speed"),
        ({"speed": 40, "depth": 1.5, "rate": 0.1, "tool": "A"}, "depth"),
        ({"speed": 40, "depth": 1, "rate": 0.1, "tool": "Z"}, "tool"),
        ({"speed": 40, "depth": 1, "rate": 0.1}, "point"),
        ({"speed": True, "depth": 1, "rate": 0.1, "tool": "A"}, "speed"),
        ({"speed": math.nan, "depth": 1, "rate": 0.1, "tool": "A"}, "speed"),
    ],
)
def test_a_point_that_does_not_fit_is_refused_by_name(point: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=f"'{named}'"):
        MACHINE.place(point)


def test_numbers_are_ordered_names_are_not() -> None:
    prices, names = Arms([9.99, 10.99, 12.99]), Arms(["red", "green"])
    assert prices.ordered
    np.testing.assert_allclose(prices.places[:, 0], [0, 1 / 3, 1])
    assert names.independent
    np.testing.assert_array_equal(names.kernel(names.places, names.places), np.eye(2))


def test_arms_with_features_stand_by_them() -> None:
    arms = Arms({"small": {"kg": 1, "colour": "red"}, "large": {"kg": 3, "colour": "blue"}})
    np.testing.assert_allclose(arms.places, [[0, 1], [1, 0]])
    assert arms.arms == ["small", "large"]


def test_a_table_is_arms_with_features() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"kg": [1.0, 2.0, 4.0]}, index=["a", "b", "c"])
    arms = Arms(table)
    assert arms.arms == ["a", "b", "c"]
    np.testing.assert_allclose(arms.places[:, 0], [0, 1 / 3, 1])


def test_an_unknown_arm_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="espresso"):
        Arms(["espresso", "latte"]).index("expresso", "record")


def test_arms_are_told_apart_by_kind_but_numbers_by_value() -> None:
    arms = Arms(["1", "2"])
    with pytest.raises(ValueError, match="'arm'"):
        arms.index(1, "record")
    assert Arms([1, 2.5]).index(np.float64(1.0), "record") == 0


@pytest.mark.parametrize("bad", [[1.0], [1, 1], [1, math.nan], "ab", 3, [[1], [2]], {"a": 1}])
def test_arms_that_are_none_are_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match="The 'arms' parameter of Arms"):
        Arms(bad)


def test_arms_come_and_go_and_keep_their_index() -> None:
    arms = Arms([1.0, 2.0, 3.0])
    arms.remove(2.0, "remove_arm")
    np.testing.assert_array_equal(arms.mask(None, "ask"), [True, False, True])
    arms.add(5.0, None, "add_arm")
    assert arms.index(5.0, "ask") == 3
    np.testing.assert_allclose(arms.places[:, 0], [0, 0.25, 0.5, 1])
    arms.add(2.0, None, "add_arm")
    assert arms.mask(None, "ask") is None
    with pytest.raises(ValueError, match="'arm'"):
        arms.add("four", None, "add_arm")
    with pytest.raises(ValueError, match="'allowed'"):
        arms.mask([], "ask")


@pytest.mark.parametrize(
    "choices",
    [
        Arms([1, 2.5, 4]),
        Arms(["a", "b"]),
        Arms({"a": [1, 2], "b": [0, 3]}),
        KnobGrid(MACHINE, 60),
        Offers(5, price=(0, 10), size=["S", "M"]),
    ],
)
def test_choices_come_back_from_json(choices: Choices) -> None:
    again = choices_of(json.loads(json.dumps(choices.to_json())))
    assert type(again) is type(choices)
    assert again.arms == choices.arms
    np.testing.assert_array_equal(again.places, choices.places)
    assert again.to_json() == choices.to_json()


def test_a_point_between_candidates_counts_as_the_nearest() -> None:
    grid = KnobGrid(Knobs(speed=(0, 100)), 11)
    assert grid.arms[grid.index({"speed": 34.0}, "record")] == {"speed": 30.0}


LETTERS = list("ABCDEFGHIJ")


def test_a_category_is_never_rounded() -> None:
    knobs = Knobs(x=(0, 1), y=(0, 1), z=(0, 1), tool=LETTERS)
    grid, rng = KnobGrid(knobs, 500), np.random.default_rng(0)
    for _ in range(200):
        point = dict(zip("xyz", rng.random(3).tolist(), strict=True)) | {
            "tool": str(rng.choice(LETTERS))
        }
        found = grid.index(point, "record")
        alike = [i for i, arm in enumerate(grid.arms) if knob(arm, "tool") == point["tool"]]
        apart = [sum((knob(grid.arms[i], k) - point[k]) ** 2 for k in "xyz") for i in alike]
        assert found == alike[int(np.argmin(apart))]


def knob(arm: Any, name: str) -> Any:
    """Return a value of a point."""
    return arm[name]


def test_categories_that_no_point_has_are_refused() -> None:
    grid = KnobGrid(Knobs(tool=LETTERS, die=LETTERS), 50)
    there = {(knob(arm, "tool"), knob(arm, "die")) for arm in grid.arms}
    tool, die = next(
        pair for pair in [(a, b) for a in LETTERS for b in LETTERS] if pair not in there
    )
    with pytest.raises(ValueError, match=r"'arm' parameter of record must be of categories"):
        grid.index({"tool": tool, "die": die}, "record")


def test_allowed_points_are_taken_at_their_word() -> None:
    grid = KnobGrid(Knobs(speed=(0, 100), depth=(1, 8, "int"), tool=["A", "B", "C"]), 100)
    named = grid.mask([{"tool": "C"}, {"tool": "A", "depth": 2.0}], "ask")
    assert named is not None
    for arm, allowed in zip(grid.arms, named, strict=True):
        only = knob(arm, "tool") == "C" or (knob(arm, "tool") == "A" and knob(arm, "depth") == 2)
        assert allowed == only
    whole = grid.mask([grid.arms[7], grid.arms[9]], "ask")
    assert whole is not None
    assert np.flatnonzero(whole).tolist() == [7, 9]
    for bad in ({"speed": 12.3456, "depth": 2, "tool": "C"}, {"speed": 12.3456}):
        with pytest.raises(ValueError, match=r"'allowed'.*Knobs.points\(100\)"):
            grid.mask([bad], "ask")
    for none in ({"tool": "Z"}, {"colour": "red"}, {}, "C"):
        with pytest.raises(ValueError, match="allowed"):
            grid.mask([none], "ask")


def test_a_category_without_a_point_is_refused_at_construction() -> None:
    many = Knobs(part=[f"part {i}" for i in range(60)])
    with pytest.raises(ValueError, match=r"'candidates'.*hold 50 of 60 categories of 'part'"):
        choices_of(many, 50)
    assert len(choices_of(many, 60).arms) == 60
    old = {"kind": "Knobs", "knobs": many.to_json(), "candidates": 50}
    assert len(choices_of(old).arms) == 50  # a log of before can be read


def test_added_arms_are_the_same_by_one_rule() -> None:
    arms = Arms([10, 20, 30])
    with pytest.raises(ValueError, match="'arm' parameter of add_arm must be a new arm"):
        arms.add(10.0, None, "add_arm")
    arms.remove(np.int64(10), "remove_arm")
    assert arms.add(np.float64(10), None, "add_arm") == 10
    assert arms.arms == [10, 20, 30]
    assert type(arms.add(np.float64(40), None, "add_arm")) is float
    assert choices_of(arms.to_json()).arms == [10, 20, 30, 40.0]  # none is there twice
    mixed = choices_of({"kind": "Arms", "arms": [True, 1, "1"], "features": None})
    same = [True, 1.0, np.str_("1"), np.bool_(1)]
    assert [mixed.index(one, "record") for one in same] == [0, 1, 2, 0]


def test_the_last_arm_stays() -> None:
    arms = Arms(["a", "b"])
    arms.remove("a", "remove_arm")
    with pytest.raises(ValueError, match="at least one arm must stay"):
        arms.remove("b", "remove_arm")


def test_a_table_that_loses_a_row_or_a_cell_is_refused() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="no name twice"):
        Arms(pandas.DataFrame({"kg": [1.0, 2.0, 4.0]}, index=["a", "b", "a"]))
    with pytest.raises(ValueError, match=r"arms\['b'\]\['kg'\].*none missing"):
        Arms(pandas.DataFrame({"kg": [1.0, math.nan]}, index=["a", "b"]))


@pytest.mark.parametrize(
    "bad", [[["a"], ["b"]], [1, math.nan], [{}, {}], (1, 1 << 2000), [np.timedelta64(1, "ns"), 2]]
)
def test_categories_that_are_none_are_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"The 'x' parameter of Knobs must be \(low, high\)"):
        Knobs(x=bad)


def test_a_list_is_categories_and_a_tuple_a_range() -> None:
    both = Knobs(x=[1, 2, "whole"], y=(1, 2, "int"))
    assert both.categories == {"x": (1, 2, "whole")}
    again = Knobs.from_json(json.loads(json.dumps(both.to_json())))
    assert again.categories == both.categories
    assert again.points(100) == both.points(100)
    assert len(both.points(100)) == 6


@pytest.mark.parametrize("kind", ["int", "log", "float"])
def test_a_range_written_as_a_list_is_refused_with_the_remedy(kind: str) -> None:
    given = json.loads(json.dumps({"depth": (1, 8, kind)}))
    with pytest.raises(ValueError, match=rf"'depth'.*a tuple for a range, \(1, 8, '{kind}'\)"):
        Knobs(**given)


def test_numbers_beside_texts_that_read_as_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"'arms' parameter of Arms.*Got '10.99'"):
        Arms([9.99, "10.99", 11.99])
    named = LiveBandit(Arms([9.99, "auto"]))
    with pytest.raises(ValueError, match=r"'arm' parameter of add_arm.*Got '10'"):
        named.add_arm("10")
    named.add_arm("off")
    assert Arms(["9.99", "10.99"]).independent
    old: dict[str, object] = {"kind": "Arms", "arms": [1, "2"], "features": None}
    assert choices_of(old).arms == [1, "2"]  # a log of before can be read


@pytest.mark.parametrize(
    ("arms", "wrong", "meant"),
    [
        ([9.99, 10.99], "9.99", "the number 9.99"),
        ([10.0, 12.0], "10", "the number 10.0"),
        (["1", "2"], 1, "the text '1'"),
        (["espresso", "latte"], "expresso", "'espresso'"),
    ],
)
def test_an_arm_of_another_kind_is_refused_with_the_one_that_was_meant(
    arms: list[object], wrong: object, meant: str
) -> None:
    with pytest.raises(ValueError, match=rf"did you mean {meant}\?"):
        Arms(arms).index(wrong, "ask", "allowed")


def test_arms_without_any_feature_are_refused() -> None:
    with pytest.raises(ValueError, match=r"'arms' parameter of Arms.*at least one"):
        Arms({"a": {}, "b": {}})


def test_true_is_not_the_category_1() -> None:
    knobs = Knobs(x=[1, 2, True])
    assert [knobs.place({"x": one})[0] for one in (1, np.int64(2), np.bool_(1))] == [0, 0.5, 1]
    with pytest.raises(ValueError, match="'x'"):
        Knobs(x=[1, 2]).place({"x": True})


def test_one_point_is_no_choice() -> None:
    with pytest.raises(ValueError, match="at least two points"):
        choices_of(Knobs(x=["A"]))
    with pytest.raises(ValueError, match="candidates"):
        choices_of(Arms([1, 2]), 0)
