//! An object store whose requests pass a hook, which lets them through, loses them, or loses their
//! answers.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt;
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    Put,
    /// Begins an upload, sends a part of it, completes it or gives it up.
    Upload,
    Delete,
    Get,
    List,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Answered,
    /// It is carried out, and nobody hears of it.
    AnswerLost,
    /// It does not reach the store.
    Lost,
}

#[async_trait]
pub(crate) trait Hooks: fmt::Debug + Send + Sync + 'static {
    /// Decides on a request about `location` before it is sent. One that waits here is sent later.
    async fn fate(&self, request: Request, location: &Path) -> Fate;

    /// Hears how many bytes an answer has.
    fn read(&self, _bytes: u64) {}
}

/// A store with hooks.
#[derive(Debug)]
pub(crate) struct HookedStore<H> {
    inner: Arc<dyn ObjectStore>,
    pub(crate) hooks: Arc<H>,
}

impl<H> HookedStore<H> {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, hooks: H) -> Self {
        Self { inner, hooks: Arc::new(hooks) }
    }
}

impl<H> fmt::Display for HookedStore<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hooked store")
    }
}

async fn send<H: Hooks, T>(
    hooks: Arc<H>,
    request: Request,
    location: &Path,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let lost = || Error::Generic { store: "hooked store", source: "the connection is gone".into() };
    match hooks.fate(request, location).await {
        Fate::Answered => work.await,
        Fate::AnswerLost => {
            let _ = work.await;
            Err(lost())
        }
        Fate::Lost => Err(lost()),
    }
}

impl<H: Hooks> HookedStore<H> {
    async fn send<T>(
        &self,
        request: Request,
        location: &Path,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        send(Arc::clone(&self.hooks), request, location, work).await
    }
}

#[async_trait]
impl<H: Hooks> ObjectStore for HookedStore<H> {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.send(Request::Put, location, self.inner.put_opts(location, payload, options)).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let inner =
            self.send(Request::Upload, location, self.inner.put_multipart_opts(location, options)).await?;
        Ok(Box::new(HookedUpload { inner, location: location.clone(), hooks: Arc::clone(&self.hooks) }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let got = self.send(Request::Get, location, self.inner.get_opts(location, options)).await?;
        self.hooks.read(got.range.end - got.range.start);
        Ok(got)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let got = self.send(Request::Get, location, self.inner.get_ranges(location, ranges)).await?;
        self.hooks.read(ranges.iter().map(|range| range.end - range.start).sum());
        Ok(got)
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let (inner, hooks) = (Arc::clone(&self.inner), Arc::clone(&self.hooks));
        let delete = move |location: Path| {
            let (inner, hooks) = (Arc::clone(&inner), Arc::clone(&hooks));
            async move {
                send(hooks, Request::Delete, &location, inner.delete(&location)).await?;
                Ok(location)
            }
        };
        locations.and_then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let listed = self.inner.list(prefix);
        let (hooks, below) = (Arc::clone(&self.hooks), prefix.cloned().unwrap_or_default());
        let listing = async move { send(hooks, Request::List, &below, async move { Ok(listed) }).await };
        futures::stream::once(listing).try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.send(Request::List, &prefix.cloned().unwrap_or_default(), self.inner.list_with_delimiter(prefix))
            .await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.send(Request::Put, to, self.inner.copy_opts(from, to, options)).await
    }
}

#[derive(Debug)]
struct HookedUpload<H> {
    inner: Box<dyn MultipartUpload>,
    location: Path,
    hooks: Arc<H>,
}

#[async_trait]
impl<H: Hooks> MultipartUpload for HookedUpload<H> {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (hooks, location) = (Arc::clone(&self.hooks), self.location.clone());
        let part = self.inner.put_part(data);
        async move { send(hooks, Request::Upload, &location, part).await }.boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        send(Arc::clone(&self.hooks), Request::Upload, &self.location, self.inner.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        send(Arc::clone(&self.hooks), Request::Upload, &self.location, self.inner.abort()).await
    }
}
