//! `evenkeel cluster`, and the options of commands that run on a cluster.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use evenkeel::bounded::{CREDENTIALS, read_text};
use evenkeel::cluster::{
    CLIENT_TIMEOUT, ClientSecurity, Cluster, ExecutorOptions, JobOptions, RunningExecutor, RunningScheduler,
    SchedulerOptions, ServerSecurity, Token, check_secret, read_pem,
};
use evenkeel::units::{ByteSize, Micros};
use tokio::sync::Notify;

use crate::cli::local_path::LocalPath;
use crate::cli::logging::Whose;
use crate::cli::{Failure, Output};

/// Environment variable that holds the token.
const TOKEN_VARIABLE: &str = "EVENKEEL_CLUSTER_TOKEN";

/// Minimum executor timeout: executors without a free core poll for work every 5 s.
const MIN_EXECUTOR_TIMEOUT: Duration = Duration::from_secs(6);

/// Start the processes of a cluster: one scheduler, and executors.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples, each in a separate terminal:
  evenkeel cluster scheduler
  evenkeel cluster executor --scheduler http://127.0.0.1:50050
  evenkeel query s3://bucket/events 'SELECT count(*) FROM t' --cluster http://127.0.0.1:50050

Tables and inputs must be in a place that all machines can reach: an object store, or a shared directory. \
Each machine takes the \
credentials of stores from its own environment.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Scheduler(SchedulerArgs),
    Executor(Box<ExecutorArgs>),
}

/// Start the scheduler, which hands out tasks to executors.
#[derive(Debug, ClapArgs)]
struct SchedulerArgs {
    /// Address to listen on.
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 50050))]
    listen: SocketAddr,

    /// Consider an executor lost after this long without a heartbeat; its jobs fail.
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    executor_timeout: Micros,

    #[command(flatten)]
    server: ServerArgs,

    #[command(flatten)]
    client: TlsClientArgs,
}

/// Start an executor, which pulls tasks from the scheduler.
#[derive(Debug, ClapArgs)]
struct ExecutorArgs {
    /// URL of the scheduler.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:50050")]
    scheduler: String,

    /// Address to serve results on; port 0 picks a free one.
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0))]
    listen: SocketAddr,

    /// Name or address under which other machines reach this executor [default: the address that it
    /// listens on].
    #[arg(long, value_name = "HOST")]
    host: Option<String>,

    /// Number of concurrent tasks [default: the number of cores].
    #[arg(long, value_name = "COUNT")]
    cores: Option<usize>,

    /// Memory budget of the sorts, joins and aggregations of all tasks together; beyond it they
    /// spill to the working directory.
    #[arg(long, value_name = "SIZE", default_value = "2GiB")]
    memory: ByteSize,

    /// Directory for intermediate results [default: the directory for temporary files].
    #[arg(long, value_name = "DIR")]
    work_dir: Option<LocalPath>,

    #[command(flatten)]
    server: ServerArgs,

    #[command(flatten)]
    client: TlsClientArgs,
}

/// Security options of a server.
#[derive(Debug, ClapArgs)]
struct ServerArgs {
    /// Certificate of the server, as PEM; enables encryption.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<LocalPath>,

    /// Private key of the certificate, as PEM; only its owner and group may read it.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<LocalPath>,

    /// File with the token that requests must carry; only its owner and group may read it [default:
    /// EVENKEEL_CLUSTER_TOKEN in the environment].
    #[arg(long, value_name = "FILE")]
    token_file: Option<LocalPath>,
}

/// TLS options of a client.
#[derive(Debug, ClapArgs)]
struct TlsClientArgs {
    /// CA certificates to verify servers against, as PEM.
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<LocalPath>,

    /// Name in the certificates of all servers [default: the host of each server].
    #[arg(long, value_name = "NAME", requires = "tls_ca")]
    tls_name: Option<String>,
}

/// Options of a command that can run on a cluster.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArgs {
    /// Run on the cluster of this scheduler, such as http://127.0.0.1:50050.
    #[arg(long, value_name = "URL")]
    cluster: Option<String>,

    /// Give up after this long, over all attempts.
    #[arg(long, value_name = "DURATION", default_value = "1h", requires = "cluster")]
    deadline: Micros,

    /// Number of attempts to run the whole job if machines fail.
    #[arg(long, value_name = "COUNT", default_value_t = 3, requires = "cluster", value_parser = clap::value_parser!(u32).range(1..=10))]
    tries: u32,

    /// File with the token of the cluster [default: EVENKEEL_CLUSTER_TOKEN in the environment].
    #[arg(long, value_name = "FILE", requires = "cluster")]
    token_file: Option<LocalPath>,

    #[command(flatten)]
    tls: TlsClientArgs,
}

fn duration(micros: Micros) -> Duration {
    Duration::from_micros(u64::try_from(micros.get()).unwrap_or(0))
}

/// Returns the token in a file, else the one in the environment.
fn token(file: Option<&Path>) -> Result<Option<Token>, Failure> {
    let (place, text) = match file {
        Some(file) => {
            check_secret(file)?;
            (file.display().to_string(), read_text(file, CREDENTIALS)?)
        }
        None => match std::env::var(TOKEN_VARIABLE) {
            Ok(text) => (TOKEN_VARIABLE.to_owned(), text),
            Err(std::env::VarError::NotPresent) => return Ok(None),
            Err(error) => return Err(Failure::wrong_usage(format!("{TOKEN_VARIABLE}: {error}"))),
        },
    };
    // An empty token is refused, since requests would seem to be protected.
    if text.trim().is_empty() {
        return Err(Failure::wrong_usage(format!(
            "{place} is empty: generate a token with 'openssl rand -hex 32'; to serve requests without a \
                token, omit the option and unset the variable"
        )));
    }
    let token = Token::new(&text).map_err(|reason| Failure::wrong_usage(format!("{place}: {reason}")))?;
    Ok(Some(token))
}

impl ServerArgs {
    fn security(&self) -> Result<ServerSecurity, Failure> {
        let identity = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => {
                check_secret(key)?;
                Some((read_pem(certificate)?, read_pem(key)?))
            }
            _ => None,
        };
        Ok(ServerSecurity { identity, token: token(self.token_file.as_deref())? })
    }
}

impl TlsClientArgs {
    fn security(&self, token: Option<Token>) -> Result<ClientSecurity, Failure> {
        let authority = self.tls_ca.as_deref().map(read_pem).transpose()?;
        Ok(ClientSecurity { authority, server_name: self.tls_name.clone(), token })
    }
}

impl ClusterArgs {
    /// Whether a cluster is named.
    pub(crate) fn is_given(&self) -> bool {
        self.cluster.is_some()
    }

    /// Connects to the requested cluster; returns `None` if the work is done on this machine.
    pub(crate) async fn connect(&self, out: &Output) -> Result<Option<Cluster>, Failure> {
        let Some(url) = &self.cluster else { return Ok(None) };
        crate::cli::logging::to_stderr(Whose::Client);
        let security = self.tls.security(token(self.token_file.as_deref())?)?;
        if let Some(warning) = security.warning(url) {
            out.note(&warning);
        }
        let options =
            JobOptions { deadline: duration(self.deadline), tries: self.tries, ..JobOptions::default() };
        let cluster = Cluster::connect(url, security, options).await?;
        Ok(Some(cluster))
    }
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    crate::cli::logging::to_stderr(Whose::Server);
    match args.command {
        Command::Scheduler(args) => scheduler(args, out).await,
        Command::Executor(args) => executor(*args, out).await,
    }
}

async fn scheduler(args: SchedulerArgs, out: &mut Output) -> Result<(), Failure> {
    let security = args.server.security()?;
    if duration(args.executor_timeout) < MIN_EXECUTOR_TIMEOUT {
        let message = "--executor-timeout must be at least 6s: a busy executor sends a heartbeat every 5 s";
        return Err(Failure::wrong_usage(message));
    }
    let interrupt = out.interrupt();
    let warning = security.warning(args.listen);
    let scheme = if security.identity.is_some() { "https" } else { "http" };
    let client = args.client.security(security.token.clone())?;
    if security.identity.is_some() && !client.is_encrypted() {
        out.note("without --tls-ca the scheduler cannot cancel tasks of executors whose client is gone");
    }
    let options = SchedulerOptions {
        listen: args.listen,
        security,
        executor_timeout: duration(args.executor_timeout),
        client,
        client_timeout: CLIENT_TIMEOUT,
    };
    let scheduler = RunningScheduler::start(options).await?;
    warning.iter().for_each(|warning| out.note(warning));
    out.text(&format!("scheduler at {scheme}://{}\n", scheduler.address()))?;
    stop_requested(&interrupt).await?;
    scheduler.stop().await;
    Ok(())
}

async fn executor(args: ExecutorArgs, out: &mut Output) -> Result<(), Failure> {
    let security = args.server.security()?;
    let interrupt = out.interrupt();
    let warning = security.warning(args.listen);
    let client = args.client.security(security.token.clone())?;
    let host = match args.host {
        Some(host) => host,
        None if args.listen.ip().is_unspecified() => {
            let message = "an executor that listens on all addresses needs --host, the name or address under which \
                    others reach it";
            return Err(Failure::wrong_usage(message));
        }
        None => args.listen.ip().to_string(),
    };
    let cores =
        args.cores.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1);
    let options = ExecutorOptions {
        scheduler: args.scheduler,
        listen: args.listen,
        host,
        cores,
        memory: args.memory,
        work_dir: args.work_dir.map(PathBuf::from),
        security,
        client,
    };
    let executor = RunningExecutor::start(options).await?;
    warning.iter().for_each(|warning| out.note(warning));
    out.text(&format!("executor at {}, {cores} concurrent tasks\n", executor.address()))?;
    stop_requested(&interrupt).await?;
    out.note("stopping after the running tasks; interrupt again to stop at once");
    tokio::select! {
        () = executor.stop() => Ok(()),
        stopped = stop_requested(&interrupt) => stopped,
    }
}

/// Waits for Ctrl-C or, on Unix, SIGTERM.
async fn stop_requested(interrupt: &Notify) -> Result<(), Failure> {
    #[cfg(unix)]
    {
        let mut ended = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            () = interrupt.notified() => {}
            _ = ended.recv() => {}
        }
    }
    #[cfg(not(unix))]
    interrupt.notified().await;
    Ok(())
}
