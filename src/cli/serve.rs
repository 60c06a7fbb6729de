//! `evenkeel serve`: tables for clients of PostgreSQL.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args as ClapArgs;
use evenkeel::serve::{Passwords, ServeOptions, Server, Tls, check_exposure};
use evenkeel::units::Micros;

use crate::cli::limits::LimitArgs;
use crate::cli::local_path::LocalPath;
use crate::cli::logging::Whose;
use crate::cli::tables::{ExportArgs, NamedPlace, Tables};
use crate::cli::{Failure, Output};

/// Time for connections to close, beyond that for running queries.
const TIME_TO_CLOSE: Duration = Duration::from_secs(10);

/// Serve tables to clients of PostgreSQL: psql, drivers, charting tools and notebooks.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel serve events                               then: psql -h 127.0.0.1 -p 5433 -c '\\d'
  evenkeel serve ads/ users=users.parquet             all tables of a folder, and an export
  evenkeel serve ads/ --listen 0.0.0.0:5433 --password-file users --tls-cert cert.pem --tls-key key.pem

Nothing can be written through this server. Each query sees the newest version of its tables; SET evenkeel.version = 7 \
(or 'events=7, users=3') selects older ones for a connection. Metrics for Prometheus are at \
http://127.0.0.1:9433/metrics, and /healthz says whether the tables can be read. Ctrl-C lets running queries end; a \
second one stops at once.")]
pub(crate) struct Args {
    /// Directories of tables, folders of tables, and exports in any input format; NAME=PLACE gives
    /// a table or an export a name.
    #[arg(required = true, value_name = "PLACE")]
    places: Vec<String>,

    /// Address for clients; port 0 picks a free one.
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5433))]
    listen: SocketAddr,

    /// Address for /metrics and /healthz; 'none' to disable.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9433")]
    metrics: MetricsAddress,

    /// File with a line USER:PASSWORD for each user, which only its owner may read. Passwords are
    /// checked by SCRAM-SHA-256 and never sent.
    #[arg(long, value_name = "FILE", conflicts_with = "no_password")]
    password_file: Option<LocalPath>,

    /// Accept connections from other machines without a password.
    #[arg(long)]
    no_password: bool,

    /// Certificate of the server, as PEM. With it, only encrypted connections are accepted.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<LocalPath>,

    /// Private key of the certificate, as PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<LocalPath>,

    /// Maximum number of connections.
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: u32,

    /// Disconnect a client that accepts no rows of its query for this long.
    #[arg(long, value_name = "TIME", default_value = "5m")]
    client_timeout: Micros,

    /// Close a connection that sends no statement for this long.
    #[arg(long, value_name = "TIME", default_value = "8h")]
    idle_timeout: Micros,

    /// Time that running queries have to end after Ctrl-C or SIGTERM before they are cancelled.
    #[arg(long, value_name = "TIME", default_value = "15s")]
    grace: Micros,

    #[command(flatten)]
    limits: LimitArgs,

    // Last, because its heading applies to all options after it.
    #[command(flatten)]
    exports: ExportArgs,
}

/// Address for metrics; `None` if they are disabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MetricsAddress(Option<SocketAddr>);

impl FromStr for MetricsAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim().eq_ignore_ascii_case("none") {
            return Ok(Self(None));
        }
        let address = text.parse().map_err(|error| format!("{error}; write ADDRESS:PORT, or none"))?;
        Ok(Self(Some(address)))
    }
}

fn duration(time: Micros) -> Duration {
    Duration::from_micros(time.get().unsigned_abs())
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    crate::cli::logging::to_stderr(Whose::Server);
    let limits = args.limits.limits()?;
    if args.places.iter().any(|place| place == "-" || place.ends_with("=-")) {
        return Err(Failure::wrong_usage("standard input can be read only once; name files or tables"));
    }
    check_exposure(args.listen, args.password_file.is_some(), args.no_password).map_err(Failure::usage)?;
    let passwords = args.password_file.as_ref().map(|file| Passwords::read(file.as_ref())).transpose()?;
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => Some(Tls::read(certificate.as_ref(), key.as_ref())?),
        _ => None,
    };
    let places: Vec<NamedPlace> = args.places.iter().map(|place| NamedPlace::parse(place)).collect();
    let tables = Tables::open(&places, &args.exports, out).await?;
    let (is_encrypted, has_passwords) = (tls.is_some(), passwords.is_some());
    let options = ServeOptions {
        listen: args.listen,
        metrics: args.metrics.0,
        passwords,
        tls,
        max_connections: args.max_connections as usize,
        memory: limits.memory,
        spill: limits.spill.as_deref().map(PathBuf::from),
        query_timeout: limits.timeout,
        client_timeout: duration(args.client_timeout),
        idle_timeout: duration(args.idle_timeout),
        grace: duration(args.grace),
    };
    let interrupt = out.interrupt_within(options.grace.saturating_add(TIME_TO_CLOSE));
    let server = Server::bind(tables.served(), options).await?;
    let address = server.address()?;
    if !address.ip().is_loopback() && !is_encrypted {
        out.note("rows and names travel unencrypted; --tls-cert and --tls-key encrypt them");
    }
    let user = if has_passwords { "USER@" } else { "" };
    let encrypted = if is_encrypted { "?sslmode=require" } else { "" };
    out.text(&format!("serving at postgresql://{user}{address}/evenkeel{encrypted}\n"))?;
    if let Some(address) = server.metrics_address() {
        out.text(&format!("metrics at http://{address}/metrics\n"))?;
    }
    let stop = async {
        interrupt.notified().await;
        log::info!("stopping: running queries may finish; interrupt again to stop at once");
    };
    server.run(stop).await;
    crate::cli::remove_spilled();
    Ok(())
}
