//! The mode of the terminal, which line editing changes.

#[cfg(unix)]
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};

/// Restores the mode of the terminal when it is dropped: a signal ends the program in the middle of
/// a line.
pub(super) struct Terminal {
    #[cfg(unix)]
    mode: Option<Termios>,
}

impl Terminal {
    pub(super) fn remember() -> Self {
        Self {
            #[cfg(unix)]
            mode: tcgetattr(std::io::stdin()).ok(),
        }
    }
}

#[cfg(unix)]
impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(mode) = &self.mode {
            // Nothing else can be done.
            let _ = tcsetattr(std::io::stdin(), SetArg::TCSADRAIN, mode);
        }
    }
}
