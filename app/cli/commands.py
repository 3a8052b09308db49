"""The command line: `memoryd COMMAND`. Each command loads what it needs when it runs, so that `--help` is quick."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Literal

import typer

from app import __version__, config, log
from app.cli import audit, events, member, org, project, webhooks
from app.config import Settings
from app.model import KEY_SCOPES

cli = typer.Typer(
    help="Long-term memory for AI applications, over HTTP. `memoryd up` starts everything; all settings are environment variables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
keys_cli = typer.Typer(
    help="API keys: create, list, show, set, rotate, revoke.", no_args_is_help=True, rich_markup_mode=None
)
cli.add_typer(org.cli, name="org")
cli.add_typer(project.cli, name="project")
cli.add_typer(member.cli, name="member")
cli.add_typer(keys_cli, name="keys")
cli.add_typer(webhooks.cli, name="webhooks")
cli.add_typer(events.cli, name="events")
cli.add_typer(audit.cli, name="audit")

KeyProject = Annotated[
    str | None, typer.Option("--project", help="Id or name of the project; the default one if absent.")
]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"memoryd {__version__}")
        raise typer.Exit


@cli.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Configure nothing: each command reads the settings itself."""


def _settings(*, connected: bool = False) -> Settings:
    """Read the settings; `connected`: with the address of a database, that of a running `memoryd up` if need be."""
    settings = config.load()
    log.configure(settings.log_level, json_lines=settings.log_json)
    for name, near in config.unknown().items():
        log.get(__name__).warning("setting.unknown", name=name, **({"did_you_mean": near} if near else {}))
    if connected:
        from app.cli import addresses

        settings = addresses.complete(settings)
    return settings


@cli.command()
def up(
    stop_with_parent: Annotated[
        bool, typer.Option("--stop-with-parent", help="Stop when the process that started this one ends.")
    ] = False,
) -> None:
    """Run everything: database, queue, schema, API and worker; restart what crashes; Ctrl-C stops all.

    MEMORYD_DATA says where the data is, MEMORYD_PORT where the API listens. With DATABASE_URL or REDIS_URL set, that
    server is used and no embedded one is started. Once all is ready, connection.json in the data folder has the base
    URL and a key.
    """
    from app.cli import up as everything

    raise typer.Exit(everything.run(_settings(), stop_with_parent=stop_with_parent))


@cli.command()
def serve() -> None:
    """Run the API alone. Needs DATABASE_URL (and REDIS_URL, so that the worker hears of new events at once)."""
    from app.api import server

    raise typer.Exit(server.run(_settings(connected=True)))


@cli.command()
def worker() -> None:
    """Run a worker alone: it turns accepted events into memories. Needs DATABASE_URL (and REDIS_URL)."""
    from worker import main

    raise typer.Exit(asyncio.run(main.run(_settings(connected=True))))


@cli.command()
def migrate() -> None:
    """Bring the schema of the database up to date. Safe to repeat, and to run from several places at once."""
    from app.store import migrate as migrations

    settings = _settings(connected=True)
    applied = asyncio.run(migrations.migrate(settings.database_url.get_secret_value() if settings.database_url else ""))
    print("\n".join(f"applied {name}" for name in applied) or "The schema is up to date.")


@cli.command()
def doctor() -> None:
    """Check the database, its extensions, the schema, Redis, the model and the embedder; a line each.

    Exit code 1 when something does not work; the line says what to do.
    """
    raise typer.Exit(asyncio.run(_examine(_settings())))


async def _examine(settings: Settings) -> int:
    from app.cli import doctor as doctors

    bad = 0
    async for finding in doctors.examine(settings):
        bad += not finding.good
        print(f"{'ok  ' if finding.good else 'FAIL'}  {finding.part:<11} {finding.text}", flush=True)
    return 1 if bad else 0


@cli.command()
def healthcheck(
    of_worker: Annotated[
        bool, typer.Option("--worker", help="Ask for the worker of this machine, not the API.")
    ] = False,
) -> None:
    """Say by the exit code whether the API (or the worker) of this machine works; for containers."""
    from app.cli import health

    settings = _settings(connected=of_worker)
    raise typer.Exit(asyncio.run(health.worker(settings)) if of_worker else health.api(settings))


@cli.command()
def demo(
    file: Annotated[
        Path | None, typer.Option(help="A conversation in LoCoMo's format, instead of the two of our own.")
    ] = None,
    language: Annotated[str, typer.Option(help="Of our own conversations: en, zh or both.")] = "both",
    number: Annotated[int, typer.Option(min=1, help="Which conversation of the file.")] = 1,
) -> None:
    """Tell a long conversation to the running service (or to one started for it), and ask about it."""
    from app.cli import demo as demonstration

    demonstration.run(_settings(), file=file, language=language, number=number)


ServiceUrl = Annotated[
    str | None, typer.Option("--url", help="Base URL of the service; the one that runs on MEMORYD_DATA if absent.")
]
ServiceKey = Annotated[str | None, typer.Option("--key", help="Key of that service, or @FILE that holds it.")]


@cli.command("import")
def import_memories(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A file, - for standard input, or a base URL.")],
    source_key: Annotated[
        str | None, typer.Option("--source-key", help="Key of the service that SOURCE is, or @FILE that holds it.")
    ] = None,
    url: ServiceUrl = None,
    key: ServiceKey = None,
) -> None:
    """Take memories into a running service as they are: ids, times, metadata, categories and states stay.

    SOURCE is what `memoryd export` wrote, a list or page of memories as JSON, or another service (memoryd or the hosted
    platform) by its base URL. Safe to break off and to repeat: what is there is passed over. Exit code 1 when some lines
    could not be taken; they are named, and keep no other one out.
    """
    from app.cli import move, sources

    into = move.place(config.load(), url, key)
    if source.startswith(("http://", "https://")):
        found = sources.of_service(source, move.secret(source_key or ""))
    else:
        found = sources.of_standard_input() if source == "-" else sources.of_file(Path(source))
    raise typer.Exit(move.read(into, found))


@cli.command("export")
def export_memories(
    target: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Where to; standard output if absent.", show_default=False)
    ] = None,
    filters: Annotated[
        str | None, typer.Option(help='Which memories, as JSON: {"user_id": "alice"}; all if absent.')
    ] = None,
    url: ServiceUrl = None,
    key: ServiceKey = None,
) -> None:
    """Write the memories of a running service to a file, one a line as JSON, with all that `memoryd import` needs.

    Equal memories make equal files. Nothing is hidden: expired, superseded and merged memories are there.
    """
    from app.cli import move

    move.write(move.place(config.load(), url, key), target, move.filters_of(filters))


@cli.command("erase")
def erase_owner(
    user: Annotated[str | None, typer.Option("--user", help="The user with this id.", show_default=False)] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Or the agent.", show_default=False)] = None,
    app: Annotated[str | None, typer.Option("--app", help="Or the application.", show_default=False)] = None,
    run: Annotated[str | None, typer.Option("--run", help="Or the run.", show_default=False)] = None,
    of: KeyProject = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count only.")] = False,
    vacuum: Annotated[
        bool, typer.Option("--vacuum", help="Afterwards, clear dead rows out of the tables' pages.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the receipt as JSON.")] = False,
) -> None:
    """Erase every trace of a user, agent, application or run, and print the receipt.

    Safe to break off and to repeat. Exit code 1 when there is no such owner, or something is left.
    """
    from app.cli import erase

    kind, name = erase.owner_of({"user": user, "agent": agent, "app": app, "run": run})
    erase.run(erase.Order(kind, name, of, yes=yes, dry_run=dry_run, vacuum=vacuum, as_json=as_json))


@cli.command()
def openapi() -> None:
    """Print the interface as OpenAPI 3.1."""
    from app import api

    print(api.openapi_yaml(), end="")


Expires = Annotated[
    str | None,
    typer.Option(help="When it stops working: 12h, 30d, 2027-01-31; never if absent.", show_default=False),
]


KeyIdArgument = Annotated[str, typer.Argument(metavar="ID", help="The id that `memoryd keys list` shows.")]


@keys_cli.command("create")
def create_key(
    name: Annotated[str, typer.Option(help="What the key is for; shown by `memoryd keys list`.")] = "default",
    role: Annotated[
        Literal["owner", "member"],
        typer.Option(help="An owner's key may also make, change and delete the projects of its organization."),
    ] = "owner",
    scope: Annotated[
        list[str] | None,
        typer.Option(help=f"What it may do; repeat it. One of {', '.join(KEY_SCOPES)}; all if absent."),
    ] = None,
    expires: Expires = None,
    pin: Annotated[
        list[str] | None,
        typer.Option(help="Confine it to owners, such as user_id=alice or user_id='team-*'; repeat it."),
    ] = None,
    of: KeyProject = None,
) -> None:
    """Make an API key and print it. It is shown only this once."""
    from app.cli import keys

    grant = keys.granted(role=role, scopes=scope or (), expires=expires, pin=pin or ())
    print(asyncio.run(keys.create(_settings(connected=True), name, grant, project=of)))


@keys_cli.command("list")
def list_keys(of: KeyProject = None) -> None:
    """List the API keys: id, beginning, name, what each may do, and when it was made, used last, and ends."""
    from app.cli import keys

    for key in asyncio.run(keys.list_all(_settings(connected=True), project=of)):
        print(keys.line(key))


@keys_cli.command("show")
def show_key(key_id: KeyIdArgument, of: KeyProject = None) -> None:
    """Show one API key as the list does; never the key itself."""
    from app.cli import keys

    print(keys.line(asyncio.run(keys.show(_settings(connected=True), key_id, project=of))))


@keys_cli.command("set")
def set_key(
    key_id: KeyIdArgument,
    field: Annotated[str, typer.Argument(metavar="FIELD", help="name, role, scopes, expires or pins.")],
    value: Annotated[
        str,
        typer.Argument(
            metavar="VALUE",
            help="Scopes and pins with commas between, as memories:read,memories:write or user_id=alice; pins: none;"
            " expires: 30d, a date, or never.",
        ),
    ],
    of: KeyProject = None,
) -> None:
    """Change what an API key is called or may do. The key stays the same; every process follows within seconds."""
    from app.cli import keys

    print(keys.line(asyncio.run(keys.change(_settings(connected=True), key_id, field, value, project=of))))


@keys_cli.command("rotate")
def rotate_key(
    key_id: KeyIdArgument,
    overlap: Annotated[str, typer.Option(help="How long the former key goes on working, such as 15m; 0: not.")] = "24h",
    expires: Annotated[
        str | None,
        typer.Option(help="When the new one stops working; if absent, it lives as long as the former one was to."),
    ] = None,
    of: KeyProject = None,
) -> None:
    """Make a key that may do the same as another one, and print it. The former one works a while longer."""
    from app.cli import keys

    _, secret = asyncio.run(
        keys.rotate(_settings(connected=True), key_id, overlap=overlap, expires=expires, project=of)
    )
    print(secret)


@keys_cli.command("revoke")
def revoke_key(
    key_id: KeyIdArgument,
    of: KeyProject = None,
) -> None:
    """Make an API key useless. Every process follows within seconds."""
    from app.cli import keys

    key = asyncio.run(keys.revoke(_settings(connected=True), key_id, project=of))
    print(f"Revoked {key.prefix}… ({key.name}).")
