"""`bestarm help` and `bestarm completion`."""

import click

from bestarm.cli.app import main


@main.command("help")
@click.argument("command", required=False)
@click.pass_context
def help_(ctx: click.Context, command: str | None) -> None:
    """Say what bestarm can do, or what one command does: `bestarm help run`."""
    root = ctx.find_root()
    if command is None:
        click.echo(root.get_help())
        return
    found = main.get_command(root, command)
    if found is None:
        raise click.UsageError(f"no such command {command!r}; `bestarm help` lists them")
    with click.Context(found, info_name=command, parent=root, **found.context_settings) as own:
        click.echo(found.get_help(own))


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what lets a shell complete commands and options at Tab: `bestarm completion bash`.

    For good, once:

    \b
    echo 'eval "$(bestarm completion bash)"' >> ~/.bashrc
    echo 'eval "$(bestarm completion zsh)"' >> ~/.zshrc
    bestarm completion fish > ~/.config/fish/completions/bestarm.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(main, {}, "bestarm", "_BESTARM_COMPLETE").source())
