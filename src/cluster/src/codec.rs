//! Serialises planetree's own plan nodes. All other nodes are left to the engine's codec.

use super::merge::{MergeBlocks, MergeExec};
use super::node::{RoundExec, RoundRequest};
use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use planetree_base::wire::{WireReader, WireWriter};
use std::sync::Arc;

/// Prefixes that mark planetree's plan nodes in serialised form. The engine's own encodings never start with them.
const ROUND: &[u8] = b"\xFFplanetree round\xFF";
const MERGE: &[u8] = b"\xFFplanetree merge\xFF";

/// Codec for [`RoundExec`] and [`MergeExec`].
#[derive(Debug, Default)]
pub(crate) struct RoundCodec {
    engine: BallistaPhysicalExtensionCodec,
}

/// Reads a serialised request.
pub(crate) fn read_request(bytes: &[u8]) -> planetree_base::error::Result<RoundRequest> {
    let mut reader = WireReader::new(bytes);
    let mut list = || reader.list().map(<[u8]>::to_vec);
    Ok(RoundRequest { task: list()?, snapshot: list()?, job: list()? })
}

impl PhysicalExtensionCodec for RoundCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let odd = || DataFusionError::Plan("plan of a different planetree version".to_owned());
        if let Some(bytes) = bytes.strip_prefix(MERGE) {
            let [replies] = inputs else { return Err(odd()) };
            let job = String::from_utf8(bytes.to_vec()).map_err(|_| odd())?;
            return Ok(Arc::new(MergeExec::new(MergeBlocks { job }, replies.clone())));
        }
        let Some(bytes) = bytes.strip_prefix(ROUND) else {
            return self.engine.try_decode(bytes, inputs, context, converter);
        };
        let [scan] = inputs else { return Err(odd()) };
        let request = read_request(bytes).map_err(|_| odd())?;
        Ok(Arc::new(RoundExec::new(request, scan.clone())))
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        if let Some(merge) = node.downcast_ref::<MergeExec>() {
            bytes.extend_from_slice(MERGE);
            bytes.extend_from_slice(merge.operator().job.as_bytes());
            return Ok(());
        }
        let Some(round) = node.downcast_ref::<RoundExec>() else {
            return self.engine.try_encode(node, bytes, converter);
        };
        let mut writer = WireWriter::default();
        let RoundRequest { task, snapshot, job } = round.operator();
        [task, snapshot, job].into_iter().for_each(|part| writer.list(part));
        bytes.extend_from_slice(ROUND);
        bytes.extend_from_slice(&writer.into_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::scan_of;
    use crate::merge::MergePlan;
    use crate::share::{groups_of, key_of};
    use datafusion::datasource::listing::PartitionedFile;
    use datafusion::datasource::physical_plan::FileGroup;
    use datafusion_proto::physical_plan::AsExecutionPlan;
    use datafusion_proto::protobuf::PhysicalPlanNode;

    fn there_and_back(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let codec = RoundCodec::default();
        let message = PhysicalPlanNode::try_from_physical_plan(plan, &codec).unwrap();
        let mut bytes = Vec::new();
        message.try_encode(&mut bytes).unwrap();
        let context = TaskContext::default();
        PhysicalPlanNode::try_decode(&bytes).unwrap().try_into_physical_plan(&context, &codec).unwrap()
    }

    #[test]
    fn a_request_survives_a_round_trip_with_its_shares() {
        let file = |start| {
            PartitionedFile::new_with_range("data/part-0.parquet".to_owned(), 900, start, start + 300)
        };
        let groups = vec![FileGroup::new(vec![file(0), file(300)]), FileGroup::new(vec![file(600)])];
        let question =
            RoundRequest { task: b"what".to_vec(), snapshot: vec![0, 255, 7], job: b"how".to_vec() };
        let plan = Arc::new(RoundExec::new(question.clone(), scan_of(groups.clone())));
        let back = there_and_back(plan);
        let back = back.downcast_ref::<RoundExec>().unwrap();
        assert!(back.operator() == &question);
        assert_eq!(back.properties().output_partitioning().partition_count(), 2);
        let keys: Vec<String> = groups_of(&**back.children()[0]).unwrap().iter().map(key_of).collect();
        assert_eq!(keys, groups.iter().map(key_of).collect::<Vec<_>>());
        assert_eq!(keys[0], "data/part-0.parquet@0 data/part-0.parquet@300 ");
    }

    #[test]
    fn a_merge_plan_survives_a_round_trip() {
        let round = Arc::new(RoundExec::new(RoundRequest::default(), scan_of(vec![FileGroup::default(); 5])));
        let back = there_and_back(MergePlan { mergers: 3 }.of("level", round).unwrap());
        let merge = back.downcast_ref::<MergeExec>().unwrap();
        assert_eq!(merge.operator().job, "level");
        assert_eq!(merge.properties().output_partitioning().partition_count(), 3);
        assert!(merge.children()[0].children()[0].downcast_ref::<RoundExec>().is_some());
    }
}
