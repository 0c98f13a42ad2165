"""The leaderboard: who plays what, who stands where, what each goes by, and a row of one's own."""

from __future__ import annotations

import csv
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from wgp_agents import cli
from wgp_agents.benchmark.files import JSON
from wgp_agents.benchmark.leaderboard import SUITES, Contest, knowledge, standings, suites
from wgp_agents.benchmark.leaderboard import played as playing
from wgp_agents.benchmark.leaderboard.knowledge import FACTS
from wgp_agents.registry import AGENTS
from wgp_gym.registration import ENVIRONMENTS

WITHOUT_BUDGET = tuple(fact for fact in FACTS if fact != "B_T")
OWN = '''
import numpy as np
from wgp_agents import Agent


class Lazy(Agent):
    """Plays the arm in the middle, whatever it pays."""

    takes_units = False

    def _restart(self, mask):
        pass

    def _choose(self, uniform):
        return np.full(self.num_learners, len(self.problem.domain) // 2)

    def _learn(self, actions, rewards, active):
        pass
'''


def test_every_environment_is_played_or_said_to_be_left_out() -> None:
    played = {contest.id for contest in suites.CONTESTS} | set(suites.NOT_PLAYED)
    assert played == {entry.id for entry in ENVIRONMENTS}
    assert {contest.board for contest in suites.CONTESTS} == set(suites.BOARDS)


def test_who_takes_part() -> None:
    labels = [agent.label for agent in suites.contestants()]
    assert {"WGP-UCB", "Adaptive WGP-UCB", "Learned WGP-UCB", "random"} <= set(labels)
    assert not {"oracle", "policy", "PPO"} & set(labels)
    grid = suites.hindsight(suites.Contest("functions", "any", "WGPBandit-Pricing-v0"))
    assert len(grid) == len(suites.DISCOUNTS) * len(suites.WIDTHS)
    widths = {agent.parameters["confidence_width"] for agent in grid}
    assert widths == {20.0 * width for width in suites.WIDTHS}  # its noise has the scale 20
    again = suites.named("wgp-ucb", {})
    with pytest.raises(ValueError, match="one that does not take part already"):
        suites.contestants([again])
    assert suites.named("wgp-ucb", {"discount": 0.5}).label == "WGP-UCB (discount=0.5)"


def test_standings_by_hand() -> None:
    regrets = {
        "a": {"random": np.full(4, 8.0), "one": np.full(4, 2.0), "two": np.full(4, 1.0)},
        "b": {"random": np.full(4, 9.0), "one": np.full(4, 1.0), "two": np.full(4, 8.0)},
    }
    regrets["b"]["two"][0] = 4.0  # its mean: 7
    best = {"a": np.full(4, 1.0), "b": np.full(4, 2.0)}
    found = standings(regrets, best, "random")
    assert [one.agent for one in found] == ["one", "two", "random"]
    one, two, chance = found
    assert one.ratios == pytest.approx({"a": 2.0, "b": 0.5})
    assert one.ratio == pytest.approx((1.0, 1.0, 1.0))
    assert two.ratio.value == pytest.approx(np.sqrt(1.0 * 3.5))
    # Of the resamples of four runs the mean of "b" lies between 4 and 8.
    assert np.sqrt(2.0) < two.ratio.low < two.ratio.value < two.ratio.high <= 2.0
    assert (one.rank.value, two.rank.value, chance.rank.value) == (1, 2, 3)
    assert (one.worst, two.worst, chance.worst) == (2.0, 4.0, 8.0)


@pytest.mark.slow
def test_the_interval_of_a_ratio_holds_what_it_should() -> None:
    """Of 300 draws 92 % cover; half the width covers 66 %, twice the width all."""
    rng, inside = np.random.default_rng(0), 0
    for _ in range(300):
        common = rng.gamma(4.0, 1.0, (2, 40))  # an episode is hard for everybody
        regrets = {
            task: {"random": 10.0 * common[i], "one": common[i] * rng.gamma(9.0, 2.0 / 9.0, 40)}
            for i, task in enumerate("ab")
        }
        (one, _) = standings(regrets, {"a": common[0], "b": common[1]}, "random")
        inside += one.ratio.low <= 2.0 <= one.ratio.high
    assert 0.88 < inside / 300 < 0.99


def test_equals_share_a_rank() -> None:
    regrets = {"a": {"random": np.full(3, 5.0), "one": np.ones(3), "two": np.ones(3)}}
    one, two, chance = standings(regrets, {"a": np.ones(3)}, "random")
    assert one.rank == two.rank == (1, 1, 1)
    assert chance.rank == (3, 3, 3)


def test_no_regret_is_a_thousandth_of_random_plays() -> None:
    regrets = {"a": {"random": np.full(3, 5.0), "one": np.zeros(3)}}
    one, chance = standings(regrets, {"a": np.zeros(3)}, "random")
    assert one.ratio.value == pytest.approx(1.0)
    assert chance.ratio.value == pytest.approx(1000.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parameters", "facts"),
    [
        ("random", {}, ()),
        ("wgp-ucb", {}, WITHOUT_BUDGET),
        ("wgp-ucb", {"variation_budget": "known"}, FACTS),
        ("neural-greedy", {}, ()),
        ("adaptive-wgp-ucb", {}, ("kernel",)),
        ("ucb1", {}, ("B", "unit")),
    ],
)
def test_what_agents_go_by(name: str, parameters: dict[str, JSON], facts: tuple[str, ...]) -> None:
    assert knowledge(name, parameters).facts == facts


def test_who_cannot_be_made_goes_by_something_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = OWN.replace("takes_units = False", "takes_units = False\n    num = property(len)")
    odd = odd.replace("_restart(self, mask):", "_restart(self, mask):\n        self.num")
    (tmp_path / "odd_agent.py").write_text(odd, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert str(knowledge("odd_agent:Lazy", {})) == "?"
    assert str(knowledge("wgp-ucb", {"discount": 7.0})) == "?"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tasks, four agents and a small grid."""
    monkeypatch.setitem(SUITES, "small", suites.Suite("small", 20, 3, "a moment"))
    contests = (
        Contest("functions", "abrupt", "WGPBandit-Abrupt-v0", 60, {"points_per_dim": 8}),
        Contest("K arms", "arms", "WGPBandit-ArmsAbrupt-v0", kwargs={"num_arms": 4}),
    )
    for module in (suites, playing):
        monkeypatch.setattr(module, "CONTESTS", contests)
        monkeypatch.setattr(module, "BOARDS", ("functions", "K arms"))
    monkeypatch.setattr(suites, "WIDTHS", (1.0,))
    monkeypatch.setattr(suites, "DISCOUNTS", (0.9, 1.0))
    few = {name: AGENTS[name] for name in ("wgp-ucb", "ucb1", "random", "d-glm-ucb")}
    monkeypatch.setattr(suites, "AGENTS", few)


@pytest.mark.slow
def test_a_stranger_adds_a_row_in_one_file(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lazy_agent.py").write_text(OWN, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    out = tmp_path / "board"
    words = ["leaderboard", "--out", str(out), "--jobs", "1"]
    assert cli.main(words) == 0
    assert "Lazy" not in capsys.readouterr().out
    played = {file: file.stat().st_mtime_ns for file in out.rglob("*.npz")}
    assert cli.main([*words, "--agent", "lazy_agent:Lazy"]) == 0
    assert all(file.stat().st_mtime_ns == when for file, when in played.items())
    said = capsys.readouterr().out
    assert re.search(r"\| Lazy +\|.*\| nothing +\|", said)
    page = tmp_path / "page.md"
    page.write_text("Ours:\n<!-- leaderboard -->\n<!-- /leaderboard -->\n", "utf-8")
    assert cli.main([*words, "--into", str(page)]) == 0  # who played before still takes part
    tables = (out / "leaderboard.md").read_text("utf-8")
    assert tables in capsys.readouterr().out
    assert tables.strip() in page.read_text("utf-8")
    with (out / "leaderboard.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    boards = {(row["board"], row["agent"]) for row in rows}
    assert {("functions", "Lazy"), ("K arms", "Lazy"), ("K arms", "random")} <= boards
    for row in rows:
        ratio = float(row["mean_regret"]) / float(row["hindsight_mean_regret"])
        assert float(row["ratio"]) == pytest.approx(ratio)
        assert row["hindsight"].startswith("fixed: ")
        assert 0.0 < float(row["seconds_per_step"]) < math.inf
    assert (out / "leaderboard.png").stat().st_size > 10_000


@pytest.mark.slow
def test_an_agent_that_has_played_and_is_gone_is_named(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gone_agent.py"
    file.write_text(OWN, "utf-8")
    words = ["leaderboard", "--out", str(tmp_path / "board"), "--jobs", "1"]
    with monkeypatch.context() as path:
        path.syspath_prepend(tmp_path)
        assert cli.main([*words, "--agent", "gone_agent:Lazy"]) == 0
    del sys.modules["gone_agent"]
    capsys.readouterr()
    assert cli.main(words) == 2
    said = capsys.readouterr().err
    assert re.search(
        r"Lazy \(gone_agent:Lazy\) has played in .*abrupt and cannot be made any", said
    )


@pytest.mark.slow
def test_an_agent_that_fails_costs_the_others_nothing(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = OWN.replace("Lazy", "Broken").replace(
        "        return np.full", "        raise RuntimeError(self)\n        return np.full"
    )
    (tmp_path / "broken_agent.py").write_text(broken, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    words = ["leaderboard", "--out", str(tmp_path / "board"), "--jobs", "1"]
    assert cli.main([*words, "--agent", "broken_agent:Broken"]) == 1
    said = capsys.readouterr().out
    assert "Broken failed in abrupt, and is on no board with it." in said
    assert "| WGP-UCB " in said
    log = re.search(r"see (\S+log\.txt)", said)
    assert log is not None
    assert "RuntimeError" in Path(log[1]).read_text("utf-8")
    assert cli.main(words) == 1  # it is asked again, and costs nobody anything
    assert "| WGP-UCB " in capsys.readouterr().out


def test_what_cannot_be_ranked(
    small: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["leaderboard", "--out", str(tmp_path / "board"), "--jobs", "1"]
    assert cli.main([*words, "--agent", "no-such-agent"]) == 2
    assert "no-such-agent" in capsys.readouterr().err
    assert cli.main([*words, "--agent", "ucb1"]) == 2
    assert "take part already" in capsys.readouterr().err
