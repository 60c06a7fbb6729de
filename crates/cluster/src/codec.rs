//! Codec of our plan nodes; Ballista's codec handles all others.

use std::sync::Arc;

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::common::internal_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{
    PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf::PhysicalExprNode;

use crate::nodes::{TaskExec, TaskSpec};

/// Prefix of our encoded nodes, which no encoded node of Ballista has.
const MAGIC: &[u8] = b"EVK1";

#[derive(Clone, PartialEq, prost::Message)]
struct TaskNode {
    /// [`TaskSpec`] as JSON.
    #[prost(bytes = "vec", tag = "1")]
    spec: Vec<u8>,
    #[prost(message, repeated, tag = "2")]
    expressions: Vec<PhysicalExprNode>,
}

/// Codec of every process of a cluster.
#[derive(Debug, Default)]
pub(super) struct Codec {
    inner: BallistaPhysicalExtensionCodec,
}

fn external(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

impl PhysicalExtensionCodec for Codec {
    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let Some(task) = node.downcast_ref::<TaskExec>() else {
            return self.inner.try_encode(node, buf, converter);
        };
        let expressions = task.expressions().iter().map(|expr| converter.physical_expr_to_proto(expr, self));
        let wire = TaskNode {
            spec: serde_json::to_vec(task.spec()).map_err(external)?,
            expressions: expressions.collect::<Result<_>>()?,
        };
        buf.extend_from_slice(MAGIC);
        prost::Message::encode(&wire, buf).map_err(external)
    }

    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(body) = buf.strip_prefix(MAGIC) else {
            return self.inner.try_decode(buf, inputs, context, converter);
        };
        let wire = <TaskNode as prost::Message>::decode(body).map_err(external)?;
        let [input] = inputs else {
            return internal_err!("a task has exactly one input, not {}", inputs.len());
        };
        let spec: TaskSpec = serde_json::from_slice(&wire.spec).map_err(external)?;
        let decoding = PhysicalPlanDecodeContext::new(context, self);
        let schema = spec.expression_schema()?;
        let expressions =
            wire.expressions.iter().map(|expr| converter.proto_to_physical_expr(expr, &schema, &decoding));
        Ok(Arc::new(TaskExec::try_new(spec, expressions.collect::<Result<_>>()?, Arc::clone(input))?))
    }

    fn try_decode_udf(&self, name: &str, buf: &[u8]) -> Result<Arc<ScalarUDF>> {
        match evenkeel_engine::query::functions().find(|function| function.name() == name) {
            Some(function) => Ok(Arc::new(function)),
            None => self.inner.try_decode_udf(name, buf),
        }
    }
}
