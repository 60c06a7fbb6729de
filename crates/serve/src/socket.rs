//! The socket of a connection: limits on the size of messages and on waiting for a client.

use std::io;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::BytesMut;
use evenkeel_engine::query::expect_panics;
use futures::FutureExt;
use pgwire::error::{ErrorInfo, PgWireError};
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use pgwire::tokio::server::{MaybeTls, PgWireMessageServerCodec};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use tokio_util::codec::{Decoder, Encoder, Framed, FramedParts};

/// Maximum size of a message of a client, such as a statement with its parameters, in bytes.
pub(crate) const LARGEST_MESSAGE: usize = 16 << 20;

/// Number of bytes to buffer before sending.
const SENT_AT_ONCE: usize = 64 << 10;

/// Messages from and to a client.
pub(crate) type Socket = Framed<Patient, Codec>;

/// The protocol, after the start-up.
pub(crate) struct Codec {
    inner: PgWireMessageServerCodec<()>,
    pub(crate) sent: u64,
}

impl Decoder for Codec {
    type Item = PgWireFrontendMessage;
    type Error = PgWireError;

    fn decode(&mut self, bytes: &mut BytesMut) -> Result<Option<Self::Item>, Self::Error> {
        // The length follows the kind. It is checked before the rest of the message has arrived.
        if let Some([_, a, b, c, d]) = bytes.first_chunk::<5>() {
            let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
            if length > LARGEST_MESSAGE {
                return Err(PgWireError::MessageTooLarge(LARGEST_MESSAGE, length));
            }
        }
        check_texts(bytes)?;
        // The library panics on counts and lengths that the message does not have.
        let _expected = expect_panics();
        let decoded = std::panic::catch_unwind(AssertUnwindSafe(|| self.inner.decode(bytes)));
        decoded.unwrap_or(Err(PgWireError::InvalidStartupMessage)).map_err(|error| match error {
            PgWireError::InvalidStartupMessage => malformed("08P01", "invalid message format"),
            error => error,
        })
    }
}

fn malformed(code: &str, message: &str) -> PgWireError {
    let info = ErrorInfo::new("FATAL".to_owned(), code.to_owned(), message.to_owned());
    PgWireError::UserError(Box::new(info))
}

/// Checks that statements are valid UTF-8; the library would replace invalid bytes.
fn check_texts(bytes: &BytesMut) -> Result<(), PgWireError> {
    let Some([kind, a, b, c, d]) = bytes.first_chunk::<5>() else { return Ok(()) };
    let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
    let (Some(body), true) = (bytes.get(5..length.saturating_add(1)), matches!(kind, b'Q' | b'P')) else {
        return Ok(());
    };
    // A name and a statement in Parse, a statement in Query.
    let texts = body.split(|byte| *byte == 0).take(if *kind == b'P' { 2 } else { 1 });
    let is_text = |text: &[u8]| std::str::from_utf8(text).is_ok();
    match texts.into_iter().all(is_text) {
        true => Ok(()),
        false => Err(malformed("22021", "invalid byte sequence for encoding \"UTF8\"")),
    }
}

impl Encoder<PgWireBackendMessage> for Codec {
    type Error = io::Error;

    fn encode(&mut self, message: PgWireBackendMessage, bytes: &mut BytesMut) -> Result<(), io::Error> {
        let before = bytes.len();
        self.inner.encode(message, bytes)?;
        self.sent += (bytes.len() - before) as u64;
        Ok(())
    }
}

/// Continues with a socket after the start-up.
pub(crate) fn started(socket: Framed<MaybeTls, PgWireMessageServerCodec<()>>, patience: Duration) -> Socket {
    let parts = socket.into_parts();
    let io = Patient { io: parts.io, patience, waiting: None };
    let mut continued = FramedParts::new(io, Codec { inner: parts.codec, sent: 0 });
    continued.read_buf = parts.read_buf;
    continued.write_buf = parts.write_buf;
    let mut socket = Framed::from_parts(continued);
    socket.set_backpressure_boundary(SENT_AT_ONCE);
    socket
}

/// A stream that fails if the peer accepts nothing for some time.
pub(crate) struct Patient {
    io: MaybeTls,
    patience: Duration,
    /// Set while a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    /// Fails once a write has waited for too long.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(waiting.poll_unpin(cx));
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, "the client accepts no rows"))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.io).poll_write(cx, bytes) {
            Poll::Pending => self.wait(cx).map(Err),
            done => {
                self.waiting = None;
                done
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.io).poll_flush(cx) {
            Poll::Pending => self.wait(cx).map(Err),
            done => done,
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
