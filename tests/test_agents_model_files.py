"""A model's file runs no code, and one that is damaged is named."""

from __future__ import annotations

import io
import pickle
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import stable_baselines3
import torch
from small_model import SMALL, TASK, Touch, entries, forged, renote, rewrite, small_model

import wgp_agents
from wgp_agents import cli
from wgp_agents.algorithms.learned.sb3.model import ALGORITHMS, SHIPPED, algorithm, shipped_model
from wgp_agents.benchmark.declaration import declare, from_flags
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.training import comparison, training
from wgp_agents.training.rivals import Match

WEIGHTS = "policy.pth"
LARGE = 2**22  # bytes, more than a small model may have
EXPERIMENT = """
seeds = 2
[[environment]]
id = "WGPBandit-Abrupt-v0"
kwargs = { points_per_dim = 5, horizon = 12 }
[[agent]]
name = "ppo"
parameters = { model = 'MODEL' }
"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model("ppo", tmp_path_factory.mktemp("models"))


@pytest.fixture
def model(kept: Path, tmp_path: Path) -> Path:
    """Return a model that a test may damage."""
    for file in (kept, kept.with_suffix(".json")):
        shutil.copy(file, tmp_path)
    return tmp_path / kept.name


def make(path: Any, algo: str = "ppo", **parameters: Any) -> Any:
    return wgp_agents.make(algo, gymnasium.make(TASK, **SMALL), model=path, **parameters)


def saved(state: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


def weights(path: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = torch.load(io.BytesIO(entries(path)[WEIGHTS]))
    return found


def test_a_pickle_in_the_settings_is_not_run(model: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    rewrite(model, data=forged(model, canary))
    played = rollout(make(model), gymnasium.make(TASK, **SMALL), 3)
    assert np.isfinite(played["reward"]).all()
    experiment = tmp_path / "experiment.toml"
    experiment.write_text(EXPERIMENT.replace("MODEL", str(model)), "utf-8")
    assert cli.main(["run", str(experiment), "--dry-run"]) == 0
    assert not canary.exists()
    with pytest.raises(ValueError, match="a file that stable-baselines3 can load"):
        make(model, trust=True)
    assert canary.exists()  # so it is a file that would


def test_a_pickle_in_the_place_of_the_weights_is_not_run(model: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    for code in (pickle.dumps(Touch(canary)), saved({"action_net.bias": Touch(canary)})):
        rewrite(model, policy__pth=code)
        with pytest.raises(ValueError, match=r"whose 'policy\.pth' can be read .*ppo\.zip"):
            make(model)
    assert not canary.exists()


@pytest.mark.parametrize(("algo", "continuous"), [*((a, False) for a in ALGORITHMS), ("ppo", True)])
def test_what_is_loaded_plays_as_stable_baselines3_has_it(
    algo: str, continuous: bool, tmp_path: Path
) -> None:
    path = small_model(algo, tmp_path, continuous=continuous)
    env = make_vector(TASK, 3, continuous=continuous, **SMALL)
    theirs = wgp_agents.make(
        algo, env, model=algorithm(algo).load(path), reward_scale=3.0, deterministic=algo == "dqn"
    )
    actions = rollout(theirs, env, 5)["action"]
    for trust in (False, True):
        agent = wgp_agents.make(algo, env, model=path, trust=trust)
        np.testing.assert_array_equal(rollout(agent, env, 5)["action"], actions)
    assert len(np.unique(actions)) > 1 or algo == "dqn"


def test_another_makers_model_needs_trust(tmp_path: Path) -> None:
    path = tmp_path / "foreign.zip"
    env = gymnasium.make(TASK, **SMALL)
    stable_baselines3.A2C("MlpPolicy", env, n_steps=8, device="cpu").save(path)
    with pytest.raises(ValueError, match=r"loaded; or, since .* with trust=True\. Got .*foreign"):
        make(path, "a2c")
    agent = make(path, "a2c", trust=True)
    assert np.isfinite(rollout(agent, env, 3)["reward"]).all()
    with pytest.raises(ValueError, match="'trust' parameter of SB3Agent must be True or False"):
        make(path, "a2c", trust="yes")
    with pytest.raises(ValueError, match=r"must be trained by 'ppo'"):
        make(stable_baselines3.A2C.load(path), "ppo")


@pytest.mark.parametrize("trust", [True, "true", 1])
def test_no_experiment_can_give_trust(trust: Any) -> None:
    entry = {"name": "ppo", "parameters": {"model": "m.zip", "trust": trust}}
    values = {"environment": [{"id": TASK}], "agent": [entry]}
    with pytest.raises(ValueError, match="The agent 'ppo' has no parameter 'trust'"):
        declare(values)
    flags = from_flags([TASK], [f"ppo:model=m.zip,trust={str(trust).lower()}"])
    with pytest.raises(ValueError, match="The agent 'ppo' has no parameter 'trust'"):
        declare(flags)


def other_shape(path: Path) -> None:
    rewrite(path, policy__pth=saved(weights(path) | {"action_net.bias": torch.zeros(6)}))


def other_type(path: Path) -> None:
    whole = {name: one.long() for name, one in weights(path).items()}
    rewrite(path, policy__pth=saved(whole))


def not_finite(path: Path) -> None:
    rewrite(
        path, policy__pth=saved(weights(path) | {"action_net.bias": torch.full((5,), torch.nan)})
    )


def one_more(path: Path) -> None:
    rewrite(path, policy__pth=saved(weights(path) | {"more": torch.zeros(1)}))


def no_state(path: Path) -> None:
    rewrite(path, policy__pth=saved([1, 2]))


def a_bomb(path: Path) -> None:
    rewrite(path, policy__pth=bytes(LARGE))


def a_bomb_inside(path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as inner:
        inner.writestr("archive/data/0", bytes(LARGE))  # a thousandth of it when packed
    rewrite(path, policy__pth=buffer.getvalue())


def a_deep_nest(path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(entries(path)[WEIGHTS])) as inner:
        held = {name: inner.read(name) for name in inner.namelist()}
    held["archive/data.pkl"] = b"\x80\x02})" + b"\x85" * 60_000 + b"K\x01s."  # {(((...))): 1}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as inner:
        for name, data in held.items():
            inner.writestr(name, data)
    rewrite(path, policy__pth=buffer.getvalue())


def packed_oddly(path: Path) -> None:
    held = entries(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr(WEIGHTS, held[WEIGHTS])


def packed_oddly_inside(path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_BZIP2) as inner:
        inner.writestr("archive/data/0", bytes(8))
    rewrite(path, policy__pth=buffer.getvalue())


def a_flipped_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    at = data.index(entries(path)[WEIGHTS]) + 1000
    data[at] ^= 1
    path.write_bytes(data)


DAMAGES: dict[Any, str] = {
    other_shape: r"weights that its notes tell of, 'action_net\.bias' of shape \(5,\)",
    other_type: r"weights that its notes tell of, '.*' of shape",
    not_finite: "finite weights",
    one_more: r"weights that its notes tell of, no 'more'",
    no_state: r"'policy\.pth' can be read \(TypeError: it is no state",
    a_bomb: r"'policy\.pth' can be read \(ValueError: it has more than \d+ bytes\)",
    a_bomb_inside: r"'policy\.pth' can be read \(ValueError: it claims to hold more than",
    a_deep_nest: r"'policy\.pth' can be read \(ValueError: it claims to hold more than",
    packed_oddly: r"'policy\.pth' can be read \(ValueError: it is packed",
    packed_oddly_inside: r"'policy\.pth' can be read \(ValueError: what is in it is packed",
    a_flipped_byte: r"'policy\.pth' can be read \(BadZipFile",
    lambda path: path.write_bytes(path.read_bytes()[:-100]): "can be read",
    lambda path: path.write_bytes(b""): "BadZipFile",
    lambda path: rewrite(path, policy__pth=None): "KeyError",
    lambda path: path.with_suffix(".json").unlink(): r"a \.zip file with its notes",
    lambda path: (path.unlink(), path.mkdir()): r"a \.zip file with its notes",
}


@pytest.mark.parametrize(("damage", "match"), DAMAGES.items())
def test_a_damaged_model_is_named(damage: Any, match: str, model: Path) -> None:
    damage(model)
    with pytest.raises(ValueError, match=match) as caught:
        make(model)
    assert "'model' parameter of SB3Agent" in str(caught.value)
    assert "ppo.zip" in str(caught.value)
    assert len(str(caught.value)) < 800


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"algo": ...}, r"trained by 'ppo' \(not by None\)"),
        ({"algo": "a2c"}, r"trained by 'ppo' \(not by 'a2c'\)"),
        ({"dim": ...}, r"notes have 'dim', an int in \[1, 1000\]"),
        ({"dim": True}, r"notes have 'dim' as an int in \[1, 1000\] \(not True\)"),
        ({"arms": 10**300}, r"notes have 'arms' as an int"),
        ({"arms": "5"}, r"notes have 'arms' as an int"),
        ({"reward_scale": 0}, r"notes have 'reward_scale' as a number in"),
        ({"reward_scale": float("nan")}, r"notes have 'reward_scale' as a number in"),
        ({"deterministic": 1}, r"notes have 'deterministic' as true or false"),
        ({"settings": []}, r"notes have 'settings' as an object"),
        ({"settings": {"history": 10**5}}, r"notes have 'history' as an int"),
        ({"settings": {"net_arch": [4, 4.0]}}, r"notes have 'net_arch' as a list"),
        ({"settings": {"net_arch": [4] * 9}}, r"notes have 'net_arch' as a list of up to 8"),
        ({"settings": {"frequencies": "x" * 10**5}}, r"notes have 'frequencies' as an int"),
        ({"settings": {"net_arch": [10**4] * 8}}, r"a network of at most 16777216 weights"),
        ({"settings": {"net_arch": [5]}}, r"weights that its notes tell of"),
        ({"settings": {}}, r"weights that its notes tell of"),  # then those of settings.toml
        ({"arms": None}, r"weights that its notes tell of"),
    ],
)
def test_notes_that_do_not_go_with_a_model(
    changed: dict[str, Any], match: str, model: Path
) -> None:
    renote(model, **changed)
    with pytest.raises(ValueError, match=match) as caught:
        make(model)
    assert str(model.with_suffix("")) in str(caught.value)
    assert len(str(caught.value)) < 800


@pytest.mark.parametrize(
    "text",
    [b"", b"[1]", b"{", b"\xff", b"[" * 10**5, b'{"dim": ' + b"9" * 5000 + b"}", b" " * 2**21],
)
def test_notes_that_are_none(text: bytes, model: Path) -> None:
    model.with_suffix(".json").write_bytes(text)
    with pytest.raises(ValueError, match=r"a file whose notes (can|are).*ppo\.json") as caught:
        make(model)
    assert len(str(caught.value)) < 800


def test_dqn_draws_no_action_whatever_its_notes_say(tmp_path: Path) -> None:
    shipped = shipped_model("dqn", TASK)
    for file in (shipped, shipped.with_suffix(".json")):
        shutil.copy(file, tmp_path)
    renote(tmp_path / shipped.name, deterministic=False)
    told = rf"notes have 'deterministic' as true.*{re.escape(shipped.stem)}\.json"
    with pytest.raises(ValueError, match=told):
        wgp_agents.make("dqn", gymnasium.make(TASK), model=tmp_path / shipped.name)


@pytest.mark.slow
def test_notes_without_a_network_have_that_of_the_settings(tmp_path: Path) -> None:
    shipped = shipped_model("ppo", TASK)
    for file in (shipped, shipped.with_suffix(".json")):
        shutil.copy(file, tmp_path)
    env = gymnasium.make(TASK)
    actions = rollout(wgp_agents.make("ppo", env), env, 3)["action"]
    renote(tmp_path / shipped.name, settings={})
    agent = wgp_agents.make("ppo", env, model=tmp_path / shipped.name)
    np.testing.assert_array_equal(rollout(agent, env, 3)["action"], actions)


@pytest.mark.parametrize("name", ["", ".", "a\0b", "x" * 5000, "~nouser/m.zip", "/dev/null"])
def test_no_file_of_this_name(name: str) -> None:
    with pytest.raises(ValueError, match=r"must be a \.zip file with its notes") as caught:
        make(name)
    assert len(str(caught.value)) < 800


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_a_network_that_overflows_does_not_play(algo: str, tmp_path: Path) -> None:
    path = small_model(algo, tmp_path)
    huge = {name: torch.full_like(one, 1e38) for name, one in weights(path).items()}
    rewrite(path, policy__pth=saved(huge))
    agent = make(path, algo)
    agent.reset(0)
    with pytest.raises(ValueError, match=rf"a network whose values are finite.*{algo}\.zip"):
        agent.act()


@pytest.mark.parametrize("log_std", [-200.0, 200.0])
def test_a_standard_deviation_that_is_none_is_refused(log_std: float, tmp_path: Path) -> None:
    path = small_model("ppo", tmp_path, continuous=True)
    rewrite(path, policy__pth=saved(weights(path) | {"log_std": torch.tensor([log_std])}))
    env = gymnasium.make(TASK, continuous=True, **SMALL)
    with pytest.raises(ValueError, match=r"whose standard deviations are finite.*ppo\.zip"):
        wgp_agents.make("ppo", env, model=path)


class Fixed:
    """A model that plays what it is told."""

    def __init__(self, action_space: Any, action: Any, size: tuple[int, ...] = (4,)) -> None:
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, size)
        self.action_space, self.action = action_space, action

    def predict(self, rows: Any, *args: Any, **kwargs: Any) -> tuple[Any, None]:
        return np.array([self.action]), None


@pytest.mark.parametrize(("continuous", "action"), [(False, 5), (False, -1), (True, [np.nan])])
def test_a_play_that_is_none_is_the_models_fault(continuous: bool, action: Any) -> None:
    env = gymnasium.make(TASK, continuous=continuous, **SMALL)
    agent = wgp_agents.make("ppo", env, model=Fixed(env.action_space, action))
    agent.reset(0)
    with pytest.raises(
        ValueError, match=r"'model' .* must be one whose actions lie in \[0, [14]\]"
    ):
        agent.act()


@pytest.mark.parametrize(
    ("continuous", "space"),
    [
        (True, gymnasium.spaces.Box(-1, 1, (1,))),
        (True, gymnasium.spaces.Box(0, 1, (2,))),
        (False, gymnasium.spaces.Discrete(5, start=1)),
        (False, gymnasium.spaces.MultiBinary(5)),
    ],
)
def test_models_of_other_actions_are_refused(continuous: bool, space: Any) -> None:
    env = gymnasium.make(TASK, continuous=continuous, **SMALL)
    with pytest.raises(ValueError, match="'model' parameter of SB3Agent must be trained on the"):
        wgp_agents.make("ppo", env, model=Fixed(space, 0))


def test_a_model_of_pictures_is_refused() -> None:
    model = Fixed(gymnasium.spaces.Discrete(5), 0, (2, 2))
    with pytest.raises(ValueError, match="must be trained on observations of 4 numbers"):
        make(model)


@pytest.mark.parametrize(
    ("overrides", "name"),
    [({"net_arch": {"pi": [4], "vf": [4]}}, "net_arch"), ({"net_arch": [10**4] * 4}, "net_arch")],
)
def test_what_could_not_be_loaded_is_not_trained(
    overrides: dict[str, Any], name: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=f"'{name}' parameter of train must be"):
        training.train("ppo", TASK, 10, 0, tmp_path / "m.zip", SMALL, overrides)


@pytest.mark.parametrize(
    "text", [None, b"", b"steps,regret\n1,2\n", b"steps,regret,share_of_random\n1,2,nan\n"]
)
def test_learning_curves_are_read_before_anything_is_played(
    text: bytes | None, tmp_path: Path
) -> None:
    shutil.copytree(SHIPPED, tmp_path, dirs_exist_ok=True)
    curve = tmp_path / "ppo-wgpbandit-slow-seed0.csv"
    curve.unlink()
    if text is not None:
        curve.write_bytes(text)
    out = tmp_path / "out"
    with (
        pytest.raises(ValueError, match=r"learning curve.*ppo-wgpbandit-slow-seed0\.csv"),
        comparison.folder_of_models(out, Match(folder=tmp_path)),
    ):
        pytest.fail("the folder is held, and something may be played")
    assert not out.exists()
