//! Sending the requests of one training.

use super::address::Usage;
use super::cells::CellBlock;
use super::client::{ClusterRequest, SchedulerClient};
use super::merge::MergePlan;
use super::task::{Answer, Task, TaskStep};
use datafusion::datasource::physical_plan::FileGroup;
use planetree_base::error::Result;
use planetree_base::wire::malformed;
use std::sync::Arc;

/// Connection and task template shared by all requests of one training.
pub struct TrainingSession {
    /// Client of the scheduler.
    pub client: Arc<SchedulerClient>,
    /// Template of every task; only `step` differs.
    pub task: Task,
    /// File group of each share.
    pub groups: Vec<FileGroup>,
    /// Number of executors when the training began.
    pub executors: usize,
    /// Total threads of those executors.
    pub threads: usize,
    /// Tuning options from the cluster address.
    pub usage: Usage,
}

impl TrainingSession {
    /// Sends a step and returns one answer per share, in share order.
    pub fn ask(&self, step: TaskStep, is_first: bool, snapshot: &dyn Fn() -> Vec<u8>) -> Result<Vec<Answer>> {
        let task = Task { step, ..self.task.clone() };
        self.client.ask(&ClusterRequest {
            task: &task,
            snapshot,
            is_first,
            groups: &self.groups,
            merge_plan: None,
        })
    }

    /// How the answers of a level are merged; `None` if the driver sums them itself.
    pub fn merge_plan(&self, weighted: bool) -> Option<MergePlan> {
        let mergers = self.usage.mergers(self.groups.len());
        (mergers > 0).then_some(MergePlan { mergers, weighted })
    }

    /// The histogram blocks of a level, each merged over all shares or from one share.
    pub fn ask_level(
        &self,
        step: TaskStep,
        merge_plan: Option<MergePlan>,
        is_first: bool,
        snapshot: &dyn Fn() -> Vec<u8>,
    ) -> Result<Vec<CellBlock>> {
        let task = Task { step, ..self.task.clone() };
        let request = ClusterRequest { task: &task, snapshot, is_first, groups: &self.groups, merge_plan };
        let answers = self.client.ask(&request)?;
        let mut all = Vec::with_capacity(answers.len());
        for (place, answer) in answers.into_iter().enumerate() {
            match (answer, merge_plan) {
                (Answer::Merged { cells, .. }, Some(merge_plan)) => {
                    all.push(CellBlock { number: place, of: merge_plan.blocks(), bytes: cells });
                }
                (Answer::Level(mut cells), None) if cells.len() == 1 => {
                    all.push(CellBlock { number: 0, of: 1, bytes: cells.swap_remove(0) });
                }
                _ => return Err(malformed()),
            }
        }
        Ok(all)
    }
}
