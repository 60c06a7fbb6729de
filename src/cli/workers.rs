//! Other machines that work for a command: a cluster, if the program has that feature.

use clap::Args as ClapArgs;
use evenkeel::evaluate::CountRows;
use evenkeel::ingest::WritePortions;
use evenkeel::query::RunQueries;

use crate::cli::tables::Tables;
use crate::cli::{Failure, Output};

/// Options to run on other machines instead of this one.
#[derive(Debug, ClapArgs)]
pub(crate) struct WorkerArgs {
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    cluster: crate::cli::cluster::ClusterArgs,
}

#[cfg(feature = "cluster")]
impl WorkerArgs {
    /// Whether other machines are named.
    pub(crate) fn are_given(&self) -> bool {
        self.cluster.is_given()
    }

    /// Connects to the machines that count rows; `None` if this one does.
    pub(crate) async fn counter(&self, out: &Output) -> Result<Option<Box<dyn CountRows>>, Failure> {
        Ok(self.cluster.connect(out).await?.map(|cluster| Box::new(cluster) as _))
    }

    /// Connects to the machines that write portions; `None` if this one does.
    pub(crate) async fn writer(&self, out: &Output) -> Result<Option<Box<dyn WritePortions>>, Failure> {
        Ok(self.cluster.connect(out).await?.map(|cluster| Box::new(cluster) as _))
    }

    /// Connects to the machines that run queries; `None` if this one does.
    pub(crate) async fn session(
        &self,
        tables: &Tables,
        out: &Output,
    ) -> Result<Option<Box<dyn RunQueries>>, Failure> {
        let Some(cluster) = self.cluster.connect(out).await? else { return Ok(None) };
        let table = tables.single().cloned().ok_or_else(|| {
            Failure::wrong_usage("a cluster runs queries on one table; run those on several tables here")
        })?;
        Ok(Some(Box::new(evenkeel::cluster::ClusterSession::new(cluster, table))))
    }
}

#[cfg(not(feature = "cluster"))]
#[expect(clippy::unused_async, clippy::unused_self, reason = "as with the feature")]
impl WorkerArgs {
    pub(crate) fn are_given(&self) -> bool {
        false
    }

    pub(crate) async fn counter(&self, _: &Output) -> Result<Option<Box<dyn CountRows>>, Failure> {
        Ok(None)
    }

    pub(crate) async fn writer(&self, _: &Output) -> Result<Option<Box<dyn WritePortions>>, Failure> {
        Ok(None)
    }

    pub(crate) async fn session(
        &self,
        _: &Tables,
        _: &Output,
    ) -> Result<Option<Box<dyn RunQueries>>, Failure> {
        Ok(None)
    }
}
