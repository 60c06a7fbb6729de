//! Object stores in memory: one put of which fails, and one put of which waits.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::Notify;

/// When a put fails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    /// Nothing is written.
    Before,
    /// The file is written, the answer is lost.
    After,
}

/// What happens at the put of one number, counted from 0.
#[derive(Debug)]
enum Script {
    Fail(Fault),
    Wait { reached: Notify, go_on: Notify },
}

/// A store one put of which fails, or waits until it is told to go on.
#[derive(Debug)]
pub(crate) struct ScriptedStore {
    inner: Arc<dyn ObjectStore>,
    puts: AtomicUsize,
    at: AtomicUsize,
    script: Script,
}

impl ScriptedStore {
    /// The put of number `at` fails.
    pub(crate) fn failing(inner: Arc<dyn ObjectStore>, at: usize, fault: Fault) -> Self {
        Self { inner, puts: AtomicUsize::new(0), at: AtomicUsize::new(at), script: Script::Fail(fault) }
    }

    /// The first put waits.
    pub(crate) fn waiting(inner: Arc<dyn ObjectStore>) -> Self {
        let script = Script::Wait { reached: Notify::new(), go_on: Notify::new() };
        Self { inner, puts: AtomicUsize::new(0), at: AtomicUsize::new(0), script }
    }

    /// Lets the put of this number wait instead of the first.
    pub(crate) fn wait_at(&self, put: usize) {
        self.at.store(put, Ordering::SeqCst);
    }

    /// Waits until the put is reached that waits.
    pub(crate) async fn reached(&self) {
        if let Script::Wait { reached, .. } = &self.script {
            reached.notified().await;
        }
    }

    pub(crate) fn go_on(&self) {
        if let Script::Wait { go_on, .. } = &self.script {
            go_on.notify_one();
        }
    }
}

impl fmt::Display for ScriptedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("scripted store")
    }
}

#[async_trait]
impl ObjectStore for ScriptedStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let here = self.puts.fetch_add(1, Ordering::SeqCst) == self.at.load(Ordering::SeqCst);
        let lost = || Error::Generic { store: "scripted store", source: "the connection is gone".into() };
        match &self.script {
            Script::Fail(Fault::Before) if here => return Err(lost()),
            Script::Wait { reached, go_on } if here => {
                reached.notify_one();
                go_on.notified().await;
            }
            _ => {}
        }
        let result = self.inner.put_opts(location, payload, options).await;
        if here && matches!(self.script, Script::Fail(Fault::After)) { Err(lost()) } else { result }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
