//! Object stores in memory: one put of which fails, and one put of which waits.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
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

/// A store whose n-th put fails.
#[derive(Debug)]
pub(crate) struct FailingStore {
    pub(crate) inner: Arc<InMemory>,
    pub(crate) puts: AtomicUsize,
    pub(crate) failing_put: usize,
    pub(crate) fault: Fault,
}

impl fmt::Display for FailingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("failing store")
    }
}

#[async_trait]
impl ObjectStore for FailingStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let put = self.puts.fetch_add(1, Ordering::SeqCst);
        let lost = || Error::Generic { store: "failing store", source: "the connection is gone".into() };
        if put == self.failing_put && self.fault == Fault::Before {
            return Err(lost());
        }
        let result = self.inner.put_opts(location, payload, options).await;
        if put == self.failing_put { Err(lost()) } else { result }
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

/// A store one put of which waits until it is told to go on.
#[derive(Debug)]
pub(crate) struct WaitingStore {
    inner: Arc<InMemory>,
    puts: AtomicUsize,
    waits_at: AtomicUsize,
    reached: Notify,
    go_on: Notify,
}

impl WaitingStore {
    pub(crate) fn new(inner: Arc<InMemory>) -> Self {
        let (puts, waits_at) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { inner, puts, waits_at, reached: Notify::new(), go_on: Notify::new() }
    }

    /// Lets the put of this number wait, counted from 0, instead of the first.
    pub(crate) fn wait_at(&self, put: usize) {
        self.waits_at.store(put, Ordering::SeqCst);
    }

    /// Waits until the put is reached.
    pub(crate) async fn reached(&self) {
        self.reached.notified().await;
    }

    pub(crate) fn go_on(&self) {
        self.go_on.notify_one();
    }
}

impl fmt::Display for WaitingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("waiting store")
    }
}

#[async_trait]
impl ObjectStore for WaitingStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        if self.puts.fetch_add(1, Ordering::SeqCst) == self.waits_at.load(Ordering::SeqCst) {
            self.reached.notify_one();
            self.go_on.notified().await;
        }
        self.inner.put_opts(location, payload, options).await
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
