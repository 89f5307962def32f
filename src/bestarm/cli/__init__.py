"""The command line: every command is a library call with flags. Data on stdout, talk on stderr."""

from bestarm.cli import answering as answering
from bestarm.cli import asking as asking
from bestarm.cli import bench as bench
from bestarm.cli import correcting as correcting
from bestarm.cli import design as design
from bestarm.cli import helping as helping
from bestarm.cli import plan as plan
from bestarm.cli import run as run
from bestarm.cli import studies as studies
from bestarm.cli.app import main

__all__ = ["main"]
