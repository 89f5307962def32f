"""What all commands share: errors in one line, formats, talk on stderr."""

import csv
import json
import sys
from typing import Any

import click
import numpy as np

from bestarm import report
from bestarm.errors import BestArmError
from bestarm.version import __version__


class Command(click.Command):
    """A command whose errors on purpose end with exit code 1 and one line, not with a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BestArmError as error:
            raise click.ClickException(str(error)) from error


class Group(click.Group):
    """A group of such commands."""

    command_class = Command


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, prog_name="bestarm")
def main() -> None:
    """Find the best of K candidates within a fixed budget of noisy observations."""


FORMAT = click.option("-f", "--format", "style", type=click.Choice(["table", "json", "csv"]), default="table")


def plain(value: Any) -> Any:
    """Return `value` with NaN and infinities as None: JSON has no word for them."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def print_table(rows: list[dict[str, Any]], style: str) -> None:
    if style == "json":
        click.echo(json.dumps(plain(rows), indent=1))
        return
    if style == "csv":
        writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return
    widths = {key: max(len(key), *(len(str(row[key])) for row in rows)) for key in rows[0]}
    for row in [{key: key for key in rows[0]}, *rows]:
        click.echo("  ".join(f"{row[key]!s:<{width}}" for key, width in widths.items()).rstrip())


def print_answer(row: dict[str, Any], more: dict[str, Any], style: str) -> None:
    """Print one row of facts; JSON takes `more` along."""
    if style == "json":
        click.echo(json.dumps(plain(row | more), indent=1))
    elif style == "csv":
        print_table([row], "csv")
    else:
        width = max(map(len, row))
        for key, value in row.items():
            shown = report.number(value) if isinstance(value, float) else "–" if value is None else str(value)
            click.echo(f"{key.replace('_', ' '):<{width}}  {shown}")


def say(*lines: str) -> None:
    for line in lines:
        click.echo(line, err=True)
