"""The command line: every command is a library call with flags. Data on stdout, talk on stderr."""

from bestarm.cli.app import main

__all__ = ["main"]
