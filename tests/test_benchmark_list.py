"""The command that lists all ids and agents: each name apart from its summary, agents by family."""

import pytest

from wgp_agents import cli
from wgp_agents.registry import AGENTS, FAMILIES
from wgp_gym.registration import ENVIRONMENTS


def printed(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """Return the lines of every block that `wgp-gym list` prints."""
    assert cli.main(["list"]) == 0
    return [block.splitlines() for block in capsys.readouterr().out.strip().split("\n\n")]


def test_every_name_stands_apart_from_its_summary(capsys: pytest.CaptureFixture[str]) -> None:
    lines = {line[2:] for block in printed(capsys) for line in block}
    summaries = {entry.id: entry.summary for entry in ENVIRONMENTS}
    summaries |= {agent.name: agent.summary for agent in AGENTS.values()}
    columns = set()
    for name, summary in summaries.items():
        (line,) = (line for line in lines if line.split()[0] == name)
        assert line.removeprefix(name).startswith("  ")
        assert line.endswith(summary)
        columns.add(len(line) - len(summary))
    assert len(columns) == 1


def test_agents_stand_under_their_family(capsys: pytest.CaptureFixture[str]) -> None:
    families = printed(capsys)[2:]
    assert [heading for heading, *_ in families] == [f"{family}:" for family in FAMILIES]
    for heading, *lines in families:
        found = {line[2:].split()[0]: line.startswith("*") for line in lines}
        family = heading.removesuffix(":")
        expected = {a.name: a.reference for a in AGENTS.values() if a.family == family}
        assert found == expected
