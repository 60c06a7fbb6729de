//! Reads text and converts its rows on several threads, in input order.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use crate::source::error::SourceError;
use crate::source::open::Input;
use crate::source::options::READ_BATCH_BYTES;
use crate::source::raw::{RawBatch, RawCells, RawPart};

/// Batches that are converted by the reading thread, because most small inputs have no more.
const BATCHES_AT_FIRST: usize = 2;
/// Maximum number of converting threads, which is enough to read gigabytes per second.
const MAX_CONVERTERS: usize = 16;
/// Approximate memory of the parts that a converter needs to be busy.
const BYTES_PER_CONVERTER: usize = 2 << 20;
/// Parts that are read ahead of those that converters are working on.
const PARTS_AHEAD: usize = 2;

impl Input {
    /// Reads all batches, and passes on what `convert` makes of each, in input order. Long text is
    /// split into rows and converted on other threads, so `convert` may get later batches before
    /// `each` gets the result of an earlier one. `each` returns whether to continue; so does this
    /// function.
    ///
    /// # Errors
    /// Those of [`Input::next_batch`], after the results of all batches before, and those of
    /// `each`.
    pub fn convert_batches<T: Send, E: From<SourceError>>(
        &mut self,
        convert: impl Fn(RawBatch) -> T + Sync,
        mut each: impl FnMut(T) -> Result<bool, E>,
    ) -> Result<bool, E> {
        let converters = converters(self.threads);
        for number in 0usize.. {
            let Some(raw) = self.next_batch()? else { return Ok(true) };
            let is_text = matches!(raw.cells, RawCells::Text(_));
            if !each(convert(raw))? {
                return Ok(false);
            }
            if is_text && converters > 0 && number + 1 >= BATCHES_AT_FIRST {
                break;
            }
        }
        std::thread::scope(|scope| {
            let mut converters = Converters::start(scope, converters, &convert);
            converters.convert_rest(&mut || self.next_part(), &mut each)
        })
    }
}

/// Number of threads that convert beside the one that reads, which has little to do. One core gains
/// nothing by them.
fn converters(threads: usize) -> usize {
    if threads > 1 { threads.min(MAX_CONVERTERS) } else { 0 }
}

/// Threads that convert parts in turn, so that results are in the order of the parts.
struct Converters<'scope, T, F> {
    threads: Vec<Converter<'scope, T>>,
    /// Converts on the reading thread if the system starts no other.
    convert: &'scope F,
    /// Bytes of the parts whose results were not taken, in order.
    under_way: VecDeque<usize>,
    /// Number of parts whose results were taken.
    taken: usize,
}

/// Results of the batches of a part; after a failure, there are no more.
type Results<T> = Vec<Result<T, SourceError>>;

/// A thread that converts parts in the order in which it gets them.
struct Converter<'scope, T> {
    parts: Sender<RawPart>,
    results: Receiver<Results<T>>,
    thread: ScopedJoinHandle<'scope, ()>,
}

impl<'scope, T: Send + 'scope, F: Fn(RawBatch) -> T + Sync> Converters<'scope, T, F> {
    fn start(scope: &'scope Scope<'scope, '_>, count: usize, convert: &'scope F) -> Self {
        let start = |_| {
            let (parts, to_convert) = channel();
            let (converted, results) = channel();
            let work = move || {
                // Ends if there are no more parts, or if nobody waits for results any more.
                while let Ok(part) = to_convert.recv()
                    && converted.send(convert_part(part, convert)).is_ok()
                {}
            };
            let thread = Builder::new().spawn_scoped(scope, work).ok()?;
            Some(Converter { parts, results, thread })
        };
        let threads = (0..count).map_while(start).collect();
        Self { threads, convert, under_way: VecDeque::new(), taken: 0 }
    }

    /// Converts all parts that `next` returns; see [`Input::convert_batches`].
    fn convert_rest<E: From<SourceError>>(
        &mut self,
        next: &mut impl FnMut() -> Result<Option<RawPart>, SourceError>,
        each: &mut impl FnMut(T) -> Result<bool, E>,
    ) -> Result<bool, E> {
        if self.threads.is_empty() {
            while let Some(part) = next()? {
                if !pass_on(convert_part(part, self.convert), each)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        // How the input ended: a failure counts only after the rows before it.
        let mut end = None;
        loop {
            if end.is_none() && self.has_room() {
                match next() {
                    Ok(Some(part)) => self.add(part),
                    ended => end = Some(ended.map(drop)),
                }
            }
            let must_wait = end.is_some() || !self.has_room();
            if let Some(results) = self.results(must_wait) {
                if !pass_on(results, each)? {
                    return Ok(false);
                }
            } else if self.under_way.is_empty()
                && let Some(end) = end
            {
                return end.map(|()| true).map_err(E::from);
            }
        }
    }

    /// Whether one more part may be read.
    fn has_room(&self) -> bool {
        let bytes = || self.under_way.iter().sum::<usize>();
        let most_bytes = READ_BATCH_BYTES.max(self.threads.len() * BYTES_PER_CONVERTER);
        match self.under_way.len() {
            // While one is converted, the next is read, however large they are.
            0 | 1 => true,
            count => count < self.threads.len() + PARTS_AHEAD && bytes() < most_bytes,
        }
    }

    /// Hands a part to the thread whose turn it is.
    fn add(&mut self, part: RawPart) {
        let bytes = part.bytes();
        let turn = (self.taken + self.under_way.len()) % self.threads.len();
        if let Some(converter) = self.threads.get(turn) {
            // The receiver is gone if the thread panicked, which the wait for its result finds.
            let _ = converter.parts.send(part);
        }
        self.under_way.push_back(bytes);
    }

    /// Returns the results of the oldest part under way, if there is one; `None` also if they are
    /// not ready and `must_wait` is false.
    fn results(&mut self, must_wait: bool) -> Option<Results<T>> {
        if self.under_way.is_empty() {
            return None;
        }
        let turn = self.taken % self.threads.len();
        let converter = self.threads.get(turn)?;
        let result = match must_wait {
            true => converter.results.recv().map_err(|_| TryRecvError::Disconnected),
            false => converter.results.try_recv(),
        };
        match result {
            Ok(results) => {
                self.taken += 1;
                self.under_way.pop_front();
                Some(results)
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                let ended = self.threads.swap_remove(turn).thread.join();
                let early = || Box::new("a converter ended before its part") as Box<dyn Any + Send>;
                std::panic::resume_unwind(ended.err().unwrap_or_else(early))
            }
        }
    }
}

/// Reads and converts a part.
fn convert_part<T>(part: RawPart, convert: &impl Fn(RawBatch) -> T) -> Results<T> {
    part.read().into_iter().map(|batch| batch.map(convert)).collect()
}

/// Passes on results up to a failure; returns whether to continue.
fn pass_on<T, E: From<SourceError>>(
    results: Results<T>,
    each: &mut impl FnMut(T) -> Result<bool, E>,
) -> Result<bool, E> {
    for result in results {
        if !each(result?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
#[path = "converters_tests.rs"]
mod tests;
