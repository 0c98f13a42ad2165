"""How agents look: each like itself wherever it is drawn, and no two alike."""

from __future__ import annotations

import itertools
import re

import pytest

from wgp_agents.benchmark.experiment import AgentSpec
from wgp_agents.benchmark.figures import compare as plots
from wgp_agents.benchmark.figures.styles import CYCLE, DASHES, STYLES, base_style, styles
from wgp_agents.registry import AGENTS, FAMILIES, REST, AgentEntry


def test_every_agent_looks_like_itself_and_like_no_other() -> None:
    specs = [AgentSpec(name, name) for name in AGENTS]
    specs += [AgentSpec(f"{name} {k}", name) for k in range(1, 12) for name in AGENTS]
    found = styles(specs)
    assert list(found) == [spec.label for spec in specs]
    assert len(set(found.values())) == len(specs) > 50
    for name in AGENTS:
        assert found[name] == base_style(name)
    for look in found.values():
        assert look.dash == DASHES[look.line]
        assert re.fullmatch("#[0-9A-F]{6}", look.colour)


def test_the_first_four_variants_share_the_colour_and_differ_in_line_and_marker() -> None:
    found = list(styles([AgentSpec(str(k), "wgp-ucb") for k in range(9)]).values())
    assert {look.colour for look in found[:4]} == {STYLES["wgp-ucb"].colour}
    assert len({look.line for look in found[:4]}) == len({look.marker for look in found[:4]}) == 4
    assert len({look.colour for look in found}) == 3
    for one, other in itertools.combinations(found, 2):
        assert one != other


def test_a_fifth_variant_of_a_dark_colour_is_lighter_and_of_a_light_one_darker() -> None:
    def _light(name: str) -> list[int]:
        looks = styles([AgentSpec(str(k), name) for k in range(5)]).values()
        return [sum(int(one.colour[i : i + 2], 16) for i in (1, 3, 5)) for one in looks]

    dark, light = _light("wgp-ucb"), _light("random")
    assert dark[4] > dark[0]
    assert light[4] < light[0]


def test_looks_repeat_where_an_agent_has_more_variants_than_there_are() -> None:
    found = list(styles([AgentSpec(str(k), "wgp-ucb") for k in range(300)]).values())
    assert len(found) == 300
    assert len(set(found[:200])) == 200
    assert {look.colour for look in found[200:]} <= {look.colour for look in found[:200]}
    mixed = [AgentSpec(f"{name} {k}", name) for k in range(300) for name in ("oracle", "random")]
    assert len(styles(mixed)) == 600


def test_agents_without_a_row_look_the_same_whatever_they_are_compared_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fresh = [f"fresh-{k}" for k in range(40)]
    for name in fresh:
        monkeypatch.setitem(AGENTS, name, AgentEntry(name, "m:C", name, "none", REST))
    found = styles([AgentSpec(name, name) for name in AGENTS])
    assert len(set(found.values())) == len(AGENTS) > 50
    alone = styles([AgentSpec("x", "fresh-7"), AgentSpec("y", "fresh-3")])
    assert alone["x"] == found["fresh-7"]
    assert alone["y"] == found["fresh-3"]
    assert plots.look("fresh-7/a note") == found["fresh-7"]


@pytest.mark.parametrize("family", FAMILIES)
def test_agents_of_a_family_differ_in_colour_and_then_in_line(family: str) -> None:
    kin = [one.name for one in AGENTS.values() if one.family == family and one.name not in STYLES]
    looks = [base_style(name) for name in kin]
    for k in range(0, len(looks), len(CYCLE)):
        row = looks[k : k + len(CYCLE)]
        assert [look.colour for look in row] == list(CYCLE[: len(row)])
        assert {look.line for look in row} == {list(DASHES)[k // len(CYCLE) % len(DASHES)]}
