"""Hostile experiment files and flags: laid out with labels of one line, or refused in few words."""

from __future__ import annotations

import contextlib
import datetime
import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from fuzzing import HOSTILE
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from wgp_agents import cli
from wgp_agents.benchmark import plan
from wgp_agents.benchmark.declaration import declare, from_flags, read_declaration
from wgp_agents.benchmark.experiment import Experiment
from wgp_agents.benchmark.values import LONGEST_LABEL, MOST_UNITS, MOST_VARIANTS
from wgp_agents.registry import AGENTS, agent_parameters
from wgp_gym.registration import ENVIRONMENTS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Generating overly large repr"),
]

Table = dict[str, Any]

MESSAGE = 2_000  # characters that a refusal may take: it may list all agents
SECONDS = 5.0  # that any experiment may take, laid out or refused
FUZZ = settings(HOSTILE, max_examples=400)

LINES = ["\n", "\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\ufeff", "\0", "\x1b[2J", "\ud800"]
MARKS = [
    "<!-- /results -->",
    "|",
    "\\",
    "`",
    "$x^2$",
    "{",
    "}",
    "{{",
    "%s",
    "=",
    ",",
    ":",
    "[",
    "'",
]
FIELDS = ["{discount}", "{noise_std:.2f}", "{window:>99999999}", "{delta.real}", "{0}", "{delta!r}"]
pieces = st.sampled_from([*LINES, *MARKS, *FIELDS, "default", " ", "x" * 300, "\u03b7", "9" * 50])
texts = st.one_of(
    st.sampled_from(["a", "b", "c", "default"]),
    st.lists(st.one_of(pieces, st.text(max_size=5)), max_size=5).map("".join),
    st.sampled_from(["x" * 11_000, "{discount}" * 20, "9" * 5_000]),
)
scalars = st.one_of(
    st.integers(-3, 200),
    st.floats(),
    st.booleans(),
    texts,
    st.sampled_from([10**400, -(2**63), 1 << 20_000, 1e300, 5e-324]),
    st.dates(datetime.date(1, 1, 1)),
    st.just(datetime.time(1)),
)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def mostly(usual: st.SearchStrategy[Any], other: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 19).flatmap(lambda k: other if k == 13 else usual)


hostile = st.one_of(
    scalars,
    st.lists(st.floats(0.01, 0.99), max_size=4),
    st.lists(scalars, max_size=4),
    st.lists(st.lists(scalars, max_size=3), max_size=3),
    st.dictionaries(texts, scalars, max_size=2),
    st.integers(0, 2_000).map(nested),
    st.integers(0, 20_000).map(lambda n: list(range(n))),
)
usual = st.one_of(
    st.floats(0.01, 0.99),
    st.sampled_from(["default", "a", 1, 7, True]),
    st.lists(st.one_of(st.floats(0.01, 0.99), pieces), max_size=4),
)
values = mostly(usual, hostile)
labels = mostly(st.sampled_from(["a", "b|", "W {discount:.2f}", "{window}", "{{\u03b7}}"]), texts)


KWARGS = ["noise_std", "norm_bound", "horizon", "change_points", "lengthscale", "kernel"]
NAMES = ["wgp-ucb", "sw-gp-ucb", "random", "igp-ucb", "oracle"]
ids = mostly(st.sampled_from([entry.id for entry in ENVIRONMENTS][:4]), hostile)


def agents_of(name: Any) -> st.SearchStrategy[Table]:
    known = agent_parameters(name) if isinstance(name, str) and name in AGENTS else ["window"]
    keys = mostly(st.sampled_from([*known, "discount"]), texts)
    entry = {"name": st.just(name)}
    other = {"label": labels, "parameters": st.dictionaries(keys, values, max_size=3)}
    return st.fixed_dictionaries(entry, optional=other)


environments = st.fixed_dictionaries(
    {"id": ids},
    optional={
        "name": labels,
        "kwargs": st.dictionaries(mostly(st.sampled_from(KWARGS), texts), values, max_size=3),
    },
)
agents = mostly(st.sampled_from(NAMES), hostile).flatmap(agents_of)
numbers = mostly(st.sampled_from([1, 100, 10**6]), hostile)
declarations = st.fixed_dictionaries(
    {
        "environment": mostly(st.lists(environments, min_size=1, max_size=3), hostile),
        "agent": mostly(st.lists(agents, min_size=1, max_size=3), hostile),
    },
    optional={
        "title": labels,
        "description": labels,
        "seeds": numbers,
        "batch": numbers,
        "root_seed": numbers,
        "horizon": numbers,
    },
)
flags = st.tuples(
    mostly(st.sampled_from(["WGPBandit-Abrupt-v0", *NAMES]), texts),
    st.lists(
        st.tuples(st.sampled_from([*KWARGS, "discount", "window"]), mostly(usual.map(str), texts)),
        max_size=3,
    ),
).map(lambda flag: ":".join([flag[0], ",".join(f"{key}={value}" for key, value in flag[1])]))


def laid_out(make: Callable[[], Experiment]) -> Experiment | None:
    """Return an experiment, or None where it is refused: at once, and in few words."""
    started = time.perf_counter()
    made, refusal = None, ""
    try:
        made = make()
    except ValueError as error:
        refusal = str(error)
    assert len(refusal) < MESSAGE
    assert time.perf_counter() - started < SECONDS
    return made


def check_experiment(made: Experiment | None) -> None:
    """Check what the rest of the harness relies on."""
    if made is None:
        return
    labels = [agent.label for agent in made.agents]
    names = [task.name for task in made.tasks]
    assert len(set(labels)) == len(labels) <= MOST_VARIANTS
    assert len(set(names)) == len(names) <= MOST_VARIANTS
    assert len(labels) * len(names) * -(-made.seeds // made.batch) <= MOST_UNITS
    for text in [made.title, *labels, *names]:
        assert text.splitlines() == [text]
        assert len(text.encode()) <= 4 * LONGEST_LABEL
        assert "\ufeff" not in text
        assert "\0" not in text
    assert Experiment.from_dict(json.loads(json.dumps(made.as_dict()))) == made
    assert tomli_w.dumps(made.source)


@given(declarations)
@FUZZ
def test_declarations(values: Table) -> None:
    check_experiment(laid_out(lambda: declare(values)))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "x.toml"


@given(declarations, st.data())
@FUZZ
def test_files(file: Path, values: Table, data: st.DataObject) -> None:
    """A declaration as TOML, where it can be written so, with a few bytes changed."""
    try:
        content = tomli_w.dumps(values).encode()
    except (ValueError, TypeError, RecursionError):
        assume(False)
    for _ in range(data.draw(st.integers(0, 2))):
        place = data.draw(st.integers(0, len(content)))
        other = data.draw(st.one_of(st.binary(max_size=3), texts.map(surrogates_too)))
        content = content[:place] + other + content[place + data.draw(st.integers(0, 3)) :]
    mark = data.draw(st.sampled_from([b"", b"\xef\xbb\xbf", b"\xff\xfe"]))
    file.write_bytes(mark + content)
    check_experiment(laid_out(lambda: declare(read_declaration(str(file)))))


def surrogates_too(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


@given(st.lists(flags, max_size=2), st.lists(flags, max_size=2))
@FUZZ
def test_flags(of_environments: list[str], of_agents: list[str]) -> None:
    check_experiment(laid_out(lambda: declare(from_flags(of_environments, of_agents))))


words = st.one_of(
    flags.map(lambda flag: ["--env", flag]),
    flags.map(lambda flag: ["--agent", flag]),
    st.tuples(
        st.sampled_from(["--seeds", "--root-seed", "--horizon", "--jobs", "--out", "--backend"]),
        st.one_of(texts, st.integers(-1, 10**400).map(str)),
    ).map(list),
    texts.map(lambda text: [text]),
)


@given(st.lists(words, max_size=5))
@FUZZ
def test_the_command_line(arguments: list[list[str]]) -> None:
    """As far as an experiment is laid out: whether it can be played is checked elsewhere."""
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patched, contextlib.redirect_stderr(said):
        patched.setattr(plan, "check", check_experiment)
        patched.setattr(plan, "plan", lambda *_: "")
        started = time.perf_counter()
        try:
            code: Any = cli.main(["run", "--dry-run", *(word for one in arguments for word in one)])
        except SystemExit as stopped:  # argparse's own way
            code = stopped.code
        assert time.perf_counter() - started < SECONDS
    assert code in (0, 2)
    assert len(said.getvalue().rpartition("error:")[2]) < MESSAGE
