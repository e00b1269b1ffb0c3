"""The command that git runs for every record that two sides changed: merge-driver.

It is started once per file, so it loads none of what the other commands share.
"""

from __future__ import annotations

from typing import NamedTuple

import click

from loki_memory.cli.output import note, print_json


class MergeOutput(NamedTuple):
    """Printed by `merge-driver`."""

    path: str
    merged: bool


@click.command("merge-driver")
@click.argument("base")
@click.argument("ours")
@click.argument("theirs")
@click.argument("path")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def merge_driver_command(
    ctx: click.Context, base: str, ours: str, theirs: str, path: str, as_json: bool
) -> None:
    """Merge three versions of the memory file PATH; git runs this.

    The result is written to OURS. Where a version cannot be read as memory the files are merged as
    text; if that leaves conflict markers in OURS, the exit code is 1.

    \b
    Example:
      git config --global merge.loki.driver 'loki-mem merge-driver %O %A %B %P'
    """
    from loki_memory.history import merge_versions

    merged = merge_versions(base, ours, theirs, path)
    if as_json or ctx.find_root().obj["json"]:
        print_json(MergeOutput(path, merged))
    if not merged:
        note(f"{path} has conflict markers now; `loki-mem resolve` may mend it")
        raise click.exceptions.Exit(1)
