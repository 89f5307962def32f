"""The command line: every command is a library call with flags. Data on stdout, talk on stderr."""

from bestarm.cli import bench as bench
from bestarm.cli import design as design
from bestarm.cli import plan as plan
from bestarm.cli import run as run
from bestarm.cli import study as study
from bestarm.cli.app import main

__all__ = ["main"]
