//! Forests: trees are independent, so each executor grows some of them from the whole dataset, which it holds as codes.
//! Trees are distributed, not rows.

use super::client::ClusterRequest;
use super::session::TrainingSession;
use super::task::{Answer, Snapshot, Task, TaskStep, pack};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileGroup;
use planetree_base::error::Result;
use planetree_base::wire::{WireReader, WireWriter, malformed};
use planetree_train::bins::BinnedData;
use planetree_train::{Draw, ForestNode, ForestSplit, ForestTree, TreeGrower};
use std::ops::Range;
use std::sync::Arc;

/// Grows trees on the executors of a cluster.
pub struct ClusterGrower {
    session: Arc<TrainingSession>,
    workers: usize,
    snapshot: Snapshot,
    first: std::sync::atomic::AtomicBool,
}

impl ClusterGrower {
    /// A grower that uses all executors.
    pub fn new(session: Arc<TrainingSession>, snapshot: Snapshot) -> Self {
        let workers = session.executors.max(1);
        ClusterGrower { session, workers, snapshot, first: true.into() }
    }

    /// One file group per worker; it only identifies the worker.
    fn groups(&self) -> Vec<FileGroup> {
        let file = |worker: usize| {
            let path = format!("{}/trees", self.session.task.data.trim_start_matches('/'));
            PartitionedFile::new_with_range(path, self.workers as u64, worker as i64, worker as i64 + 1)
        };
        (0..self.workers).map(|worker| FileGroup::new(vec![file(worker)])).collect()
    }
}

/// The part of some trees that a worker grows.
pub fn dealt(trees: &Range<u32>, worker: usize, workers: usize) -> Range<u32> {
    let count = u64::from(trees.end - trees.start);
    let bound = |worker: usize| trees.start + (count * worker as u64 / workers.max(1) as u64) as u32;
    bound(worker)..bound(worker + 1)
}

/// The worker that a file group identifies.
pub fn worker_of(group: &FileGroup) -> usize {
    group.iter().next().and_then(|file| file.range.as_ref()).map_or(0, |range| range.start as usize)
}

impl TreeGrower for ClusterGrower {
    fn grow(&self, tree: u32, _rows: Vec<u32>) -> Result<ForestTree> {
        self.grow_batch(tree..tree + 1, &|_| Vec::new())?.pop().ok_or_else(malformed)
    }

    fn grow_batch(&self, trees: Range<u32>, _draw: &Draw<'_>) -> Result<Vec<ForestTree>> {
        let wanted = trees.len();
        let task =
            Task { step: TaskStep::Trees { trees, workers: self.workers }, ..self.session.task.clone() };
        let is_first = self.first.swap(false, std::sync::atomic::Ordering::Relaxed);
        let answers = self.session.client.ask(&ClusterRequest {
            task: &task,
            snapshot: &|| pack(&self.snapshot),
            is_first,
            groups: &self.groups(),
            merge_plan: None,
        })?;
        let mut all = Vec::with_capacity(wanted);
        for answer in answers {
            let Answer::Trees(trees) = answer else { return Err(malformed()) };
            all.extend(trees);
        }
        if all.len() == wanted { Ok(all) } else { Err(malformed()) }
    }

    fn batch_size(&self) -> Option<u32> {
        // Several per thread, so that few threads idle while the last tree grows.
        Some(4 * self.session.threads.max(1) as u32)
    }
}

impl Drop for ClusterGrower {
    fn drop(&mut self) {
        if !*self.first.get_mut() {
            self.session.client.forget(&self.session.task, &self.groups());
        }
    }
}

/// Grows some trees on local data.
pub fn grow(
    parameters: &planetree_train::config::ForestSettings,
    data: &BinnedData,
    trees: Range<u32>,
) -> Result<Vec<ForestTree>> {
    if trees.is_empty() {
        return Ok(Vec::new());
    }
    planetree_train::forest::grow_trees(parameters, data, trees)
}

/// Serialises trees.
pub fn write(trees: &[ForestTree], writer: &mut WireWriter) {
    writer.count(trees.len() as u64);
    for tree in trees {
        writer.count(tree.nodes.len() as u64);
        for node in &tree.nodes {
            writer.count(node.depth.into());
            writer.float(node.value);
            writer.float(node.cover);
            writer.count(u64::from(node.split.is_some()));
            if let Some(split) = &node.split {
                writer.count(split.feature.into());
                writer.count(split.code.into());
                writer.count(split.threshold.to_bits().into());
                writer.count(split.missing_left.into());
                writer.count(split.left.into());
                writer.float(split.gain);
            }
        }
    }
}

/// Reads what [`write`] wrote.
pub fn read(reader: &mut WireReader<'_>) -> Result<Vec<ForestTree>> {
    let count = reader.length(1)?;
    (0..count).map(|_| read_tree(reader)).collect()
}

fn read_tree(reader: &mut WireReader<'_>) -> Result<ForestTree> {
    let count = reader.length(18)?;
    let mut nodes = Vec::with_capacity(count);
    for _ in 0..count {
        let (depth, value, cover) = (reader.count()? as u32, reader.float()?, reader.float()?);
        let split = match reader.count()? {
            0 => None,
            _ => Some(ForestSplit {
                feature: reader.count()? as u32,
                code: reader.count()? as u32,
                threshold: f32::from_bits(reader.count()? as u32),
                missing_left: reader.count()? == 1,
                left: reader.count()? as u32,
                gain: reader.float()?,
            }),
        };
        nodes.push(ForestNode { depth, value, cover, split });
    }
    // A parent precedes its children, and both children exist.
    let fits = |(node, split): (usize, &ForestSplit)| {
        let left = split.left as usize;
        left > node && left < count.saturating_sub(1)
    };
    let splits = nodes.iter().enumerate().filter_map(|(place, node)| Some((place, node.split.as_ref()?)));
    if !splits.into_iter().all(fits) {
        return Err(malformed());
    }
    Ok(ForestTree { nodes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tree_is_dealt_once() {
        for (trees, workers) in [(1..9, 3), (5..6, 4), (1..101, 7)] {
            let dealt: Vec<u32> = (0..workers).flat_map(|worker| dealt(&trees, worker, workers)).collect();
            assert_eq!(dealt, trees.collect::<Vec<_>>());
        }
    }

    #[test]
    fn trees_come_back() {
        let split =
            ForestSplit { feature: 7, code: 300, threshold: -1.5, missing_left: true, left: 1, gain: 0.1 };
        let node = |split| ForestNode { depth: 1, value: 1.0 / 3.0, cover: 17.0, split };
        let trees = vec![
            ForestTree { nodes: vec![node(Some(split)), node(None), node(None)] },
            ForestTree::default(),
        ];
        let mut writer = WireWriter::default();
        write(&trees, &mut writer);
        let bytes = writer.into_bytes();
        assert_eq!(read(&mut WireReader::new(&bytes)).unwrap(), trees);
        for cut in 0..bytes.len() {
            assert!(read(&mut WireReader::new(&bytes[..cut])).is_err());
        }
    }
}
