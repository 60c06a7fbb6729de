//! Start-up of a connection: encryption, user and password.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use futures::{SinkExt, StreamExt};
use pgwire::api::auth::sasl::SASLState;
use pgwire::api::auth::sasl::scram::ScramAuth;
use pgwire::api::auth::{protocol_negotiation, save_startup_parameters_to_metadata};
use pgwire::api::{ClientInfo, METADATA_USER, PgWireConnectionState, PidSecretKeyGenerator};
use pgwire::messages::startup::{Authentication, PasswordMessageFamily, SecretKey};
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use pgwire::tokio::server::{MaybeTls, PgWireMessageServerCodec, negotiate_tls};
use tokio::net::TcpStream;
use tokio_util::codec::Framed;

use crate::failure::{Failure, SqlState, wrong_password};
use crate::metrics::add;
use crate::settings::{Settings, settings_in_options};
use crate::shared::{Open, Shared};
use crate::socket::{Socket, started};

const SCRAM: &str = "SCRAM-SHA-256";
const SCRAM_BOUND: &str = "SCRAM-SHA-256-PLUS";

type Starting = Framed<MaybeTls, PgWireMessageServerCodec<()>>;

/// A connection of an authenticated user.
pub(crate) struct Started {
    pub(crate) socket: Socket,
    pub(crate) user: String,
    pub(crate) client: SocketAddr,
    pub(crate) settings: Settings,
    pub(crate) number: i32,
    pub(crate) key: SecretKey,
    /// Counts the connection.
    pub(crate) open: Open,
}

/// Takes a connection to its first statement. Returns `None` if it ended before: it was a request
/// to cancel a query, or was refused.
pub(crate) async fn start(stream: TcpStream, shared: &Arc<Shared>) -> Option<Started> {
    let acceptor = shared.options.tls.as_ref().map(|tls| tls.acceptor.clone());
    let mut socket = negotiate_tls::<()>(stream, acceptor).await.ok()??;
    let logged_in = match log_in(&mut socket, shared).await {
        Ok(Some((user, settings))) => match Open::new(shared) {
            Some(open) => Ok(Some((user, settings, open))),
            None => {
                add(&shared.metrics.refused_connections, 1);
                let message = format!(
                    "too many connections: the limit is {}; raise it with --max-connections",
                    shared.options.max_connections
                );
                Err(Failure::fatal(SqlState::TOO_MANY_CONNECTIONS, message))
            }
        },
        Ok(None) => Ok(None),
        Err(failure) => Err(failure),
    };
    match logged_in {
        Ok(Some((user, settings, open))) => {
            let (number, key) = shared.keys.generate(&socket);
            // From here on, messages begin with their kind.
            socket.set_state(PgWireConnectionState::ReadyForQuery);
            let client = socket.socket_addr();
            let socket = started(socket, shared.options.client_timeout);
            Some(Started { socket, user, client, settings, number, key, open })
        }
        Ok(None) => None,
        Err(failure) => {
            let failure = Failure { is_fatal: true, ..failure };
            log::info!("a connection from {} was refused: {failure}", socket.socket_addr());
            let error = PgWireBackendMessage::ErrorResponse(failure.into_info().into());
            let _ = socket.send(error).await;
            let _ = socket.close().await;
            None
        }
    }
}

async fn log_in(socket: &mut Starting, shared: &Arc<Shared>) -> Result<Option<(String, Settings)>, Failure> {
    // Bytes that arrived before encryption may not be from the encrypted peer.
    if socket.is_secure() && !socket.read_buffer().is_empty() {
        let message = "received unencrypted data after the request for encryption";
        return Err(Failure::fatal(SqlState::PROTOCOL_VIOLATION, message));
    }
    let startup = loop {
        match socket.next().await {
            Some(Ok(PgWireFrontendMessage::Startup(startup))) => break startup,
            Some(Ok(PgWireFrontendMessage::CancelRequest(request))) => {
                shared.connections.cancel(request.pid, &request.secret_key);
                return Ok(None);
            }
            Some(Ok(PgWireFrontendMessage::SslNegotiation(_))) => {}
            Some(Ok(_)) => {
                return Err(Failure::fatal(SqlState::PROTOCOL_VIOLATION, "expected a start-up message"));
            }
            Some(Err(error)) => return Err(error.into()),
            None => return Ok(None),
        }
    };
    protocol_negotiation(socket, &startup).await?;
    save_startup_parameters_to_metadata(socket, &startup);
    if shared.options.tls.is_some() && !socket.is_secure() {
        let message = "this server only accepts encrypted connections; connect with sslmode=require";
        return Err(Failure::fatal(SqlState::INVALID_AUTHORIZATION, message));
    }
    let user = socket.metadata().get(METADATA_USER).filter(|user| !user.is_empty()).cloned();
    let user = user.ok_or_else(|| {
        Failure::fatal(SqlState::INVALID_AUTHORIZATION, "no PostgreSQL user name specified in startup packet")
    })?;
    check_password(socket, shared, &user).await?;
    let mut given = BTreeMap::new();
    for (name, value) in socket.metadata() {
        match name.as_str() {
            "user" | "database" | "replication" => {}
            "options" => given.extend(settings_in_options(value)),
            _ => drop(given.insert(name.clone(), value.clone())),
        }
    }
    Ok(Some((user.clone(), Settings::new(&user, &given)?)))
}

/// Checks the password of a user, if users have passwords.
async fn check_password(socket: &mut Starting, shared: &Arc<Shared>, user: &str) -> Result<(), Failure> {
    let Some(passwords) = &shared.options.passwords else { return Ok(()) };
    socket.set_state(PgWireConnectionState::AuthenticationInProgress);
    let mut scram = ScramAuth::new(Arc::new(passwords.clone()));
    let mut mechanisms = vec![SCRAM.to_owned()];
    // A password is bound to the certificate if that has a signature of a known kind.
    if let Some(tls) = shared.options.tls.as_ref().filter(|_| socket.is_secure())
        && scram.configure_certificate(&tls.certificates).is_ok()
    {
        mechanisms.insert(0, SCRAM_BOUND.to_owned());
    }
    let ask = PgWireBackendMessage::Authentication(Authentication::SASL(mechanisms.clone()));
    socket.send(ask).await.map_err(pgwire::error::PgWireError::from)?;
    let mut state = SASLState::Initial;
    loop {
        let message = match socket.next().await {
            Some(Ok(PgWireFrontendMessage::PasswordMessageFamily(message))) => message,
            Some(Err(error)) => return Err(error.into()),
            // psql asks for a password, and then opens another connection.
            _ => return Err(Failure::fatal(SqlState::INVALID_PASSWORD, wrong_password(user))),
        };
        let message = if matches!(state, SASLState::Initial) {
            let first = message.into_sasl_initial_response()?;
            if !mechanisms.contains(&first.auth_method) {
                let message = format!("unknown way to log in: {}", first.auth_method);
                return Err(Failure::fatal(SqlState::INVALID_AUTHORIZATION, message));
            }
            state = SASLState::ScramClientFirstReceived;
            PasswordMessageFamily::SASLInitialResponse(first)
        } else {
            PasswordMessageFamily::SASLResponse(message.into_sasl_response()?)
        };
        let step = scram.process_scram_message(socket, message, &state).await;
        let (answer, next) = step.map_err(|error| {
            add(&shared.metrics.failed_logins, 1);
            log::warn!("a login from {} failed: {error}", socket.socket_addr());
            Failure::fatal(SqlState::INVALID_PASSWORD, wrong_password(user))
        })?;
        let answer = PgWireBackendMessage::Authentication(answer);
        socket.send(answer).await.map_err(pgwire::error::PgWireError::from)?;
        state = next;
        if matches!(state, SASLState::Finished) {
            return Ok(());
        }
    }
}
