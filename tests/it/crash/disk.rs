//! A disk whose steps fail, tear or are the last ones before a crash, and that loses what was not
//! synced.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use evenkeel::storage::{Disk, SystemDisk};
use object_store::PutPayload;

/// What happens at one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The step is not done and reports an error; the process goes on.
    FailBefore,
    /// The step is done and reports an error.
    FailAfter,
    /// The disk is full: a file is written in part, and the step reports it.
    Full,
    /// The process dies before the step.
    KillBefore,
    /// The process dies after the step.
    KillAfter,
    /// The machine dies before the step: what was not synced is lost.
    PowerBefore,
    /// The machine dies after the step.
    PowerAfter,
}

pub(super) const FAULTS: [Fault; 7] = [
    Fault::FailBefore,
    Fault::FailAfter,
    Fault::Full,
    Fault::KillBefore,
    Fault::KillAfter,
    Fault::PowerBefore,
    Fault::PowerAfter,
];

/// A step whose effect is not yet on the disk, and how it is undone.
#[derive(Debug)]
enum Unsynced {
    /// The content of a file: half of it arrives.
    Content(PathBuf),
    /// A name that appeared in a directory: it is gone.
    Appeared(PathBuf),
    /// A name that disappeared: it is back.
    Disappeared(PathBuf, Vec<u8>),
    /// A directory that was made: it is gone with what is in it.
    Directory(PathBuf),
}

impl Unsynced {
    fn directory(&self) -> &Path {
        match self {
            Self::Content(path) => path,
            Self::Appeared(path) | Self::Disappeared(path, _) | Self::Directory(path) => {
                path.parent().unwrap()
            }
        }
    }

    fn undo(self) {
        match self {
            Self::Content(path) => {
                if let Ok(bytes) = fs::read(&path) {
                    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
                }
            }
            Self::Appeared(path) => drop(fs::remove_file(path)),
            Self::Disappeared(path, bytes) => {
                if path.parent().unwrap().is_dir() {
                    fs::write(path, bytes).unwrap();
                }
            }
            Self::Directory(path) => drop(fs::remove_dir_all(path)),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    steps: usize,
    dead: bool,
    unsynced: Vec<Unsynced>,
}

/// A disk with one fault.
#[derive(Debug)]
pub(super) struct FaultyDisk {
    at: usize,
    fault: Option<Fault>,
    state: Mutex<State>,
}

impl FaultyDisk {
    pub(super) fn new(at: usize, fault: Option<Fault>) -> Arc<Self> {
        Arc::new(Self { at, fault, state: Mutex::default() })
    }

    /// A disk without faults that goes on where this one stopped: what was not synced still is not.
    pub(super) fn after_death(&self) -> Arc<Self> {
        let unsynced = std::mem::take(&mut self.state.lock().unwrap().unsynced);
        let state = Mutex::new(State { unsynced, ..State::default() });
        Arc::new(Self { at: usize::MAX, fault: None, state })
    }

    /// One step: `done` are the effects that are not synced by it.
    fn step(
        &self,
        action: impl FnOnce() -> io::Result<()>,
        partly: impl FnOnce() -> io::Result<()>,
        effects: impl FnOnce(&mut Vec<Unsynced>),
    ) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        let dead = || io::Error::other("the process is dead");
        if state.dead {
            return Err(dead());
        }
        let here = state.steps == self.at;
        state.steps += 1;
        match self.fault.filter(|_| here) {
            None => {
                action()?;
                effects(&mut state.unsynced);
                Ok(())
            }
            Some(Fault::FailBefore) => Err(io::Error::other("the disk failed")),
            Some(Fault::FailAfter) => {
                action()?;
                effects(&mut state.unsynced);
                Err(io::Error::other("the disk failed"))
            }
            Some(Fault::Full) => {
                let _ = partly();
                effects(&mut state.unsynced);
                Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"))
            }
            Some(fault) => {
                state.dead = true;
                if matches!(fault, Fault::KillAfter | Fault::PowerAfter) {
                    action()?;
                    effects(&mut state.unsynced);
                }
                drop(state);
                if matches!(fault, Fault::PowerBefore | Fault::PowerAfter) {
                    self.lose_power();
                }
                Err(dead())
            }
        }
    }

    /// The machine dies now.
    pub(super) fn lose_power(&self) {
        let mut state = self.state.lock().unwrap();
        state.dead = true;
        std::mem::take(&mut state.unsynced).into_iter().rev().for_each(Unsynced::undo);
    }

    pub(super) fn steps(&self) -> usize {
        self.state.lock().unwrap().steps
    }
}

impl Disk for FaultyDisk {
    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        let made: Vec<PathBuf> =
            directory.ancestors().take_while(|above| !above.exists()).map(Path::to_owned).collect();
        self.step(
            || SystemDisk.create_directory(directory),
            || Ok(()),
            |effects| effects.extend(made.into_iter().rev().map(Unsynced::Directory)),
        )
    }

    fn write(&self, file: &Path, payload: &PutPayload) -> io::Result<()> {
        self.step(
            || SystemDisk.write(file, payload),
            || {
                let bytes: Vec<u8> = payload.iter().flat_map(|chunk| chunk.to_vec()).collect();
                fs::write(file, &bytes[..bytes.len() / 2])
            },
            |effects| {
                effects.push(Unsynced::Appeared(file.to_owned()));
                effects.push(Unsynced::Content(file.to_owned()));
            },
        )
    }

    fn sync_file(&self, file: &Path) -> io::Result<()> {
        self.step(
            || SystemDisk.sync_file(file),
            || Ok(()),
            |effects| effects.retain(|e| !matches!(e, Unsynced::Content(content) if content == file)),
        )
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.step(
            || SystemDisk.sync_directory(directory),
            || Ok(()),
            |effects| effects.retain(|effect| effect.directory() != directory),
        )
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(
            || SystemDisk.link(from, to),
            || Ok(()),
            |effects| {
                // Content that was not synced is no safer under its new name.
                if effects.iter().any(|e| matches!(e, Unsynced::Content(content) if content == from)) {
                    effects.push(Unsynced::Content(to.to_owned()));
                }
                effects.push(Unsynced::Appeared(to.to_owned()));
            },
        )
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(
            || SystemDisk.rename(from, to),
            || Ok(()),
            |effects| effects.push(Unsynced::Appeared(to.to_owned())),
        )
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        let bytes = fs::read(file).unwrap_or_default();
        self.step(
            || SystemDisk.remove(file),
            || Ok(()),
            |effects| effects.push(Unsynced::Disappeared(file.to_owned(), bytes)),
        )
    }
}
