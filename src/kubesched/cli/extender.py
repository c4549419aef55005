"""`kubesched extender`: serves Python plugins to a stock kube-scheduler, as an HTTP extender.

Prints the KubeSchedulerConfiguration for kube-scheduler on standard output, everything else on standard error. Ends
with 0 when it is told to stop, and with 2 when options, files or plugins are wrong.

Next: `kubesched.plugin_tools.extender_server`; `extender_serving` for how its parts are put together.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from kubesched.cli.live import server_options
from kubesched.cli.output import ERROR_EXIT, say_error

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("extender")
@click.option("--config", "config_file", metavar="FILE", help="A KubeSchedulerConfiguration that enables plugins.")
@click.option(
    "--plugin", "plugin_files", multiple=True, metavar="FILE", help="Python file with plugins to serve. Repeatable."
)
@server_options
@click.option(
    "--no-cluster", is_flag=True, help="Watch no cluster: plugins see only the nodes in each request, and no pods."
)
@click.option("--bind-address", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8888,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@click.option("--tls-cert-file", type=_FILE, help="Serve HTTPS with this certificate (PEM).")
@click.option("--tls-private-key-file", type=_FILE, help="Private key of the certificate (PEM).")
@click.option(
    "--client-ca-file", type=_FILE, help="Require client certificates signed by these CAs, instead of a token."
)
@click.option(
    "--token-file",
    type=_FILE,
    help="File with the token that clients must send; created if missing. Without it, each start makes a new token.",
)
@click.option("--insecure-allow-anybody", is_flag=True, help="Answer any client, without a token or certificate.")
@click.option(
    "--max-request-mib",
    type=click.IntRange(1, 1024),
    default=64,
    show_default=True,
    help="Largest request body, in MiB.",
)
@click.option(
    "--url-prefix", metavar="URL", help="URL at which kube-scheduler reaches this server, if not the bind address."
)
@click.option("--bind", "binds", is_flag=True, help="Bind pods through this server even if no plugin asks for it.")
@click.option("--print-config", is_flag=True, help="Print the configuration for kube-scheduler and exit.")
def extender(
    config_file: str | None,
    plugin_files: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    no_cluster: bool,
    bind_address: str,
    port: int,
    tls_cert_file: Path | None,
    tls_private_key_file: Path | None,
    client_ca_file: Path | None,
    token_file: Path | None,
    insecure_allow_anybody: bool,
    max_request_mib: int,
    url_prefix: str | None,
    binds: bool,
    print_config: bool,
) -> None:
    """Serve Python plugins to a stock kube-scheduler, as an HTTP extender.

    \b
    kubesched extender --plugin my_plugin.py > kube-scheduler.yaml
    kube-scheduler --config kube-scheduler.yaml ...

    It serves the plugins of --plugin and those that --config enables; in-tree plugins are left to kube-scheduler.
    Clients authenticate with a token, which is part of the printed URL, or with a client certificate.
    """
    if (tls_cert_file is None) != (tls_private_key_file is None):
        raise click.UsageError("--tls-cert-file and --tls-private-key-file must be given together")
    if client_ca_file is not None and tls_cert_file is None:
        raise click.UsageError("--client-ca-file needs --tls-cert-file")
    if insecure_allow_anybody and (client_ca_file or token_file):
        raise click.UsageError("--insecure-allow-anybody cannot be combined with --client-ca-file or --token-file")
    if client_ca_file is not None and token_file is not None:
        raise click.UsageError(
            "--token-file cannot be combined with --client-ca-file: clients authenticate with one or the other"
        )
    if no_cluster and (kubeconfig or context or binds):
        raise click.UsageError("--no-cluster cannot be combined with --kubeconfig, --context or --bind")
    from kubesched.cli.extender_serving import ServingChoice, serve
    from kubesched.cli.files import InputError
    from kubesched.plugin_tools.extender_server.outside_profiles import NoPluginsError
    from kubesched.plugin_tools.extender_server.server import ListenError, ListenSettings, TokenFileError
    from kubesched.scheduler.config import ConfigError

    listen = ListenSettings(bind_address, port, tls_cert_file, tls_private_key_file, client_ca_file)
    choice = ServingChoice(
        listen,
        config_file,
        plugin_files,
        kubeconfig,
        context,
        not no_cluster,
        url_prefix,
        binds,
        print_config,
        token_file,
        insecure_allow_anybody,
        max_request_mib << 20,
    )
    try:
        asyncio.run(serve(choice))
    except (InputError, ConfigError, NoPluginsError, ListenError, TokenFileError) as error:
        say_error(str(error))
        sys.exit(ERROR_EXIT)
