"""A PostgreSQL server of the tests' own, where one is installed."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


def binaries() -> Path | None:
    """Return the folder of the server's commands: Debian keeps them off the path."""
    found = [Path(path).parent for path in [shutil.which("initdb")] if path]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in found if (folder / "pg_ctl").exists()), None)


def account() -> dict[str, Any]:
    """Return whose process the server is: not root's, which it refuses."""
    if os.getuid() != 0:
        return {}
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("PostgreSQL does not run as root, and there is no user 'postgres'")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextmanager
def server() -> Iterator[str]:
    """Start a server that listens in its own folder alone; yield the URL of its first database."""
    commands = binaries()
    if commands is None:
        pytest.skip("no PostgreSQL server is installed (Debian: apt install postgresql)")
    whose = account()
    folder = Path(tempfile.mkdtemp(prefix="wgp-pg-"))  # pytest's own are closed to other users
    if whose:
        os.chown(folder, whose["user"], whose["group"])
    control = [str(commands / "pg_ctl"), "-D", str(folder / "data"), "-s", "-w"]

    def run(*command: str) -> None:
        done = subprocess.run(
            command, cwd=folder, stdout=subprocess.DEVNULL, timeout=120, check=False, **whose
        )
        assert done.returncode == 0, command

    try:
        initialise = ["-A", "trust", "-U", "wgp", "-E", "UTF8", "--locale=C", "--no-sync"]
        run(str(commands / "initdb"), "-D", str(folder / "data"), *initialise)
        log = ["-l", str(folder / "log")]
        run(*control, *log, "-o", f"-F -c listen_addresses='' -k {folder}", "start")
        try:
            yield f"postgresql+psycopg://wgp@/postgres?host={folder}"
        finally:
            run(*control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
