//! Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// State of the handling of Ctrl-C.
#[derive(Debug, Default)]
pub(crate) struct Interrupt {
    /// Notified when Ctrl-C is pressed.
    pressed: Arc<Notify>,
    /// Whether the command listens and cleans up by itself.
    awaited: AtomicBool,
    /// Whether the command continues after Ctrl-C, which ends a part of its work.
    repeated: AtomicBool,
    /// Milliseconds that the command needs to end by itself; 0 for the usual time.
    patience: AtomicU64,
}

impl Interrupt {
    /// Records that Ctrl-C was pressed, and returns whether the command will end by itself.
    pub(crate) fn press(&self) -> bool {
        self.pressed.notify_one();
        self.awaited.load(Ordering::Relaxed)
    }

    /// Time that the command needs to end by itself, if it is not the usual one.
    pub(crate) fn patience(&self) -> Option<Duration> {
        let millis = self.patience.load(Ordering::Relaxed);
        (millis > 0).then(|| Duration::from_millis(millis))
    }

    /// Whether the command continues after Ctrl-C.
    pub(crate) fn is_repeated(&self) -> bool {
        self.repeated.load(Ordering::Relaxed)
    }

    /// Returns the notification of Ctrl-C, for a command that ends by itself.
    pub(crate) fn listen(&self) -> Arc<Notify> {
        self.awaited.store(true, Ordering::Relaxed);
        Arc::clone(&self.pressed)
    }

    /// Like [`Interrupt::listen`], for a command that may need some time to end by itself.
    #[cfg(feature = "serve")]
    pub(crate) fn listen_within(&self, patience: Duration) -> Arc<Notify> {
        let millis = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        self.patience.store(millis, Ordering::Relaxed);
        self.listen()
    }

    /// Returns the notification of every Ctrl-C, for a command that continues after it.
    pub(crate) fn listen_repeatedly(&self) -> Arc<Notify> {
        self.repeated.store(true, Ordering::Relaxed);
        Arc::clone(&self.pressed)
    }
}
