//! `/metrics` and `/healthz`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::shared::Shared;

/// Maximum number of concurrent requests.
const MOST: usize = 16;
/// Time limit for reading the head of a request, and for reading the logs of the tables.
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers requests until the task is dropped.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let permits = Arc::new(Semaphore::new(MOST));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let answer = service_fn(move |request| answer(request, Arc::clone(&shared)));
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).keep_alive(false);
            let _ = http.serve_connection(TokioIo::new(stream), answer).await;
            drop(permit);
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let is_get = matches!(*request.method(), Method::GET | Method::HEAD);
    let (status, text) = match request.uri().path() {
        _ if !is_get => (StatusCode::METHOD_NOT_ALLOWED, "only GET is answered\n".to_owned()),
        "/metrics" | "/healthz" => {
            let newest = tokio::time::timeout(PATIENCE, shared.tables.newest()).await;
            match newest {
                Ok(Ok(opened)) if request.uri().path() == "/metrics" => {
                    let reserved = shared.tables.environment().reserved();
                    (StatusCode::OK, shared.metrics.text(&opened, reserved))
                }
                Ok(Ok(opened)) => match opened.unreadable.first_key_value() {
                    None => (StatusCode::OK, "ok\n".to_owned()),
                    Some((_, reason)) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
                },
                Ok(Err(failure)) => (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", failure.message)),
                Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "a table does not answer\n".to_owned()),
            }
        }
        _ => (StatusCode::NOT_FOUND, "not found; try /metrics or /healthz\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}
