"""`statecfg show`: show a saved plan."""

from __future__ import annotations

import click

from statecfg.cli import exit_codes, file_types, options
from statecfg.cli.options import Command
from statecfg.cli.output_options import OutputOptions

EXAMPLES = """
statecfg show web.plan               what would change, who planned it, when, and from which commit
statecfg show web.plan --diff        with all differences in full
statecfg show web.plan --markdown    for a pull request
statecfg show web.plan --json        for programs: the report, and where the plan comes from
"""


@click.command("show", cls=Command, examples=EXAMPLES)
@click.argument("plan", type=file_types.ExistingFile(allow_dash=True), shell_complete=options.offer_plans)
@click.option("-v", "--verbose", count=True, help="Show unchanged resources, every action, and every input.")
@click.option("--diff", is_flag=True, help="Show complete differences, however long they are.")
@click.option("--markdown", is_flag=True, help="Write Markdown to stdout.")
@options.json_option
@options.no_color_option
def command(plan: str, verbose: int, diff: bool, markdown: bool, as_json: bool, no_color: bool) -> int:
    """Show a saved plan: what would change on which hosts, who made it, when, and from which git commit.

    PLAN is a file that `statecfg plan --out` wrote, or `-` for standard input. The command needs neither the project
    nor the hosts. It verifies the checksum of the plan and refuses a damaged or edited file. The checksum does not
    prove who made the plan.
    """
    from statecfg.cli import saved_plan, show
    from statecfg.cli.main import VERSION
    from statecfg.run.saved import plan_file

    if as_json and markdown:
        raise click.UsageError("--json and --markdown can't be combined.")
    plan_data = plan_file.parse(saved_plan.content(plan), saved_plan.label(plan), VERSION)
    output = OutputOptions(verbose=verbose, diff=diff, json=as_json, no_color=no_color)
    if markdown:
        from statecfg.views import saved_markdown

        click.echo(saved_markdown.text(plan_data, VERSION), nl=False)
        return exit_codes.DONE
    from statecfg.cli import session
    from statecfg.views import saved

    document = saved.document(plan_data, VERSION)
    show.report(document, saved.lines(plan_data, VERSION, session.detail(output)), output)
    return exit_codes.DONE
