//! Assigns shares (ranges of row groups) to executors. A share returns to the executor that processed it last,
//! because the bin numbers and scores of its rows are cached there. It moves if that executor is gone, if tasks fail
//! there (its disk may be full), or if another executor has much less load.

use super::node::RoundExec;
use super::share::{groups_of, key_of};
use ballista_core::JobId;
use ballista_core::serde::protobuf::{AvailableVcores, job_status};
use ballista_core::serde::scheduler::TaskKey;
use ballista_scheduler::cluster::{BoundTask, DistributionPolicy};
use ballista_scheduler::state::execution_graph::{TaskDescription, create_task_info};
use ballista_scheduler::state::execution_stage::RunningStage;
use ballista_scheduler::state::task_manager::JobInfoCache;
use datafusion::physical_plan::ExecutionPlan;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Distribution policy that keeps shares on their executors.
#[derive(Debug, Default)]
pub(crate) struct ShareAffinity {
    /// The executor that processed each share last, by the key of the share.
    homes: Mutex<HashMap<String, String>>,
    /// The time of the last failed task of executors.
    failures: Mutex<HashMap<String, Instant>>,
}

/// Time for which an executor receives no tasks after one has failed there, if there are other executors.
const REST: Duration = Duration::from_secs(60);

/// Maximum number of shares whose executor is remembered. If there are more, all are forgotten. This only costs time,
/// because other executors may then have to rebuild the cached states.
const MOST_HOMES: usize = 100_000;

impl ShareAffinity {
    /// Notes that the task of a share has failed on the executor that it was assigned to.
    fn note_failure(&self, key: &str) {
        let homes = self.homes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(home) = homes.get(key) {
            let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
            failures.retain(|_, since| since.elapsed() < REST);
            failures.insert(home.clone(), Instant::now());
        }
    }

    /// Returns whether a task has failed on an executor recently.
    fn is_failing(&self, executor: &str) -> bool {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.get(executor).is_some_and(|since| since.elapsed() < REST)
    }

    /// Chooses one of the executors for each share. Executors on which tasks fail are avoided.
    fn choose(&self, keys: &[String], executors: &[String]) -> Vec<String> {
        let healthy: Vec<String> =
            executors.iter().filter(|executor| !self.is_failing(executor)).cloned().collect();
        let executors = if healthy.is_empty() { executors } else { &healthy };
        let mut homes = self.homes.lock().unwrap_or_else(PoisonError::into_inner);
        if homes.len() > MOST_HOMES {
            homes.clear();
        }
        let mut load: BTreeMap<&String, usize> = executors.iter().map(|executor| (executor, 0)).collect();
        for key in keys {
            if let Some(count) = homes.get(key).and_then(|home| load.get_mut(home)) {
                *count += 1;
            }
        }
        let fair = keys.len().div_ceil(executors.len().max(1));
        let mut chosen = Vec::with_capacity(keys.len());
        for key in keys {
            let home = homes.get(key).filter(|home| load.get(home).is_some_and(|count| *count <= fair));
            let home = match home {
                Some(home) => home.clone(),
                None => {
                    if let Some(count) = homes.get(key).and_then(|home| load.get_mut(home)) {
                        *count -= 1;
                    }
                    // If several executors have the least load, the one whose name sorts first is chosen.
                    let least = load.iter().min_by_key(|(_, count)| **count).map(|(name, _)| (*name).clone());
                    let Some(least) = least else { break };
                    if let Some(count) = load.get_mut(&least) {
                        *count += 1;
                    }
                    homes.insert(key.clone(), least.clone());
                    least
                }
            };
            chosen.push(home);
        }
        chosen
    }
}

#[async_trait::async_trait]
impl DistributionPolicy for ShareAffinity {
    async fn bind_tasks(
        &self,
        mut budgets: Vec<&mut AvailableVcores>,
        running_jobs: Arc<HashMap<JobId, JobInfoCache>>,
    ) -> datafusion::error::Result<Vec<BoundTask>> {
        budgets.sort_by(|one, other| one.executor_id.cmp(&other.executor_id));
        let mut bound = Vec::new();
        for (job, info) in running_jobs.iter() {
            if !matches!(info.status, Some(job_status::Status::Running(_))) {
                continue;
            }
            let mut graph = info.execution_graph.write().await;
            let session = graph.session_id().to_owned();
            let mut done = Vec::new();
            while let Some(stage) = graph.fetch_running_stage(&done) {
                done.push(stage.stage_id);
                budgets.retain(|budget| budget.vcores > 0);
                if budgets.is_empty() {
                    return Ok(bound);
                }
                match keys_of(&stage.plan) {
                    Some(keys) => {
                        let partitions = stage.pending.next_slice(usize::MAX);
                        for place in &partitions {
                            if stage.task_failure_numbers[*place] > 0 {
                                self.note_failure(&keys[*place]);
                            }
                        }
                        let wanted: Vec<String> =
                            partitions.iter().map(|place| keys[*place].clone()).collect();
                        let executors: Vec<String> =
                            budgets.iter().map(|budget| budget.executor_id.clone()).collect();
                        let homes = self.choose(&wanted, &executors);
                        for budget in &mut budgets {
                            let here = partitions.iter().zip(&homes);
                            let here = here.filter(|(_, home)| **home == budget.executor_id);
                            let here: Vec<usize> = here.map(|(partition, _)| *partition).collect();
                            if !here.is_empty() {
                                bound.push(bind(stage, &session, job, budget, here));
                            }
                        }
                    }
                    // Stages of the engine itself and merge tasks have no cached state, so they are spread evenly over
                    // the executors. Tasks that have failed begin with another executor.
                    None => {
                        let mut order: Vec<usize> = (0..budgets.len()).collect();
                        order.retain(|place| !self.is_failing(&budgets[*place].executor_id));
                        if order.is_empty() {
                            order.extend(0..budgets.len());
                        }
                        // While the others are busy, tasks wait for them, and do not go to an executor that fails.
                        order.retain(|place| room(budgets[*place].vcores) > 0);
                        if order.is_empty() {
                            continue;
                        }
                        let attempt = stage.task_failure_numbers.iter().max().copied().unwrap_or(0);
                        let executors = order.len();
                        order.rotate_left(attempt % executors);
                        for (place, index) in order.into_iter().enumerate() {
                            let budget = &mut budgets[index];
                            let fair = stage.pending.remaining().div_ceil(executors - place);
                            let most = match collapses(&stage.plan) {
                                true => usize::MAX,
                                false => fair.min(room(budget.vcores)),
                            };
                            let here = stage.pending.next_slice(most);
                            if !here.is_empty() {
                                bound.push(bind(stage, &session, job, budget, here));
                            }
                        }
                    }
                }
            }
        }
        Ok(bound)
    }

    fn name(&self) -> &str {
        "sticky"
    }
}

/// Returns how many of the free slots of an executor stages without shares may take. One slot stays free, so that an
/// executor that is busy with long stages still answers probes.
fn room(free: u32) -> usize {
    free.saturating_sub(1) as usize
}

/// Returns, for each partition of a stage, the key of the share that it processes. Returns `None` if the stage
/// does not run a job, for example because it belongs to an SQL query.
fn keys_of(stage: &Arc<dyn ExecutionPlan>) -> Option<Vec<String>> {
    let children = stage.children();
    let round = children.first()?.downcast_ref::<RoundExec>()?;
    Some(groups_of(&***round.children().first()?)?.iter().map(key_of).collect())
}

/// Returns whether all partitions of a stage must run in one task, because the stage merges them.
fn collapses(stage: &Arc<dyn ExecutionPlan>) -> bool {
    let children = stage.children();
    let [child] = children.as_slice() else { return false };
    if child.name().contains("ShuffleReader") {
        return false;
    }
    child.properties().output_partitioning().partition_count() == 1 || collapses(child)
}

/// Assigns partitions of a stage to an executor as one task.
fn bind(
    stage: &mut RunningStage,
    session: &str,
    job: &JobId,
    budget: &mut AvailableVcores,
    partitions: Vec<usize>,
) -> BoundTask {
    // The shares of a task run one after another, each on all threads. So the task takes only one slot, however many
    // shares it has.
    let is_one = collapses(&stage.plan) || keys_of(&stage.plan).is_some();
    let consumed = if is_one { 1 } else { (partitions.len() as u32).clamp(1, budget.vcores.max(1)) };
    let task_id = stage.task_infos.len();
    let attempt = partitions.iter().map(|place| stage.task_failure_numbers[*place]).max().unwrap_or(0);
    let mut info = create_task_info(budget.executor_id.clone(), task_id);
    info.global_input_partition_ids.clone_from(&partitions);
    info.vcores_consumed = consumed;
    stage.task_infos.push(info);
    budget.vcores -= consumed;
    let task = TaskDescription {
        session_id: session.to_owned(),
        key: TaskKey { job_id: job.clone(), stage_id: stage.stage_id, task_id },
        stage_attempt_num: stage.stage_attempt_num,
        task_attempt: attempt,
        global_input_partition_ids: partitions,
        vcores_consumed: consumed,
        plan: stage.plan.clone(),
        session_config: stage.session_config.clone(),
    };
    (budget.executor_id.clone(), task)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn long_stages_leave_a_slot_for_probes() {
        assert_eq!([0, 1, 2, 33].map(room), [0, 0, 1, 32]);
    }

    #[test]
    fn shares_stay_until_an_executor_leaves_or_joins() {
        let policy = ShareAffinity::default();
        let keys = names(&["1", "2", "3", "4"]);
        let first = policy.choose(&keys, &names(&["a", "b"]));
        assert_eq!(first, names(&["a", "b", "a", "b"]));
        assert_eq!(policy.choose(&keys, &names(&["b", "a"])), first);
        // When a job is partially repeated, only some of the shares are assigned.
        assert_eq!(policy.choose(&keys[1..2], &names(&["a", "b"])), names(&["b"]));
        // When an executor leaves, its shares move to the other one. Two of the four then move to the executor that
        // replaces it.
        assert_eq!(policy.choose(&keys, &names(&["a"])), names(&["a", "a", "a", "a"]));
        let after = policy.choose(&keys, &names(&["a", "c"]));
        assert_eq!(after.iter().filter(|home| **home == "c").count(), 2);
        assert_eq!(policy.choose(&keys, &names(&["a", "c"])), after);
        // When a task fails on an executor, its shares move away and stay away, unless there is no other executor.
        let key = keys.iter().zip(&after).find(|(_, home)| **home == "c").unwrap().0;
        policy.note_failure(key);
        for _ in 0..2 {
            assert_eq!(policy.choose(&keys, &names(&["a", "c"])), names(&["a", "a", "a", "a"]));
        }
        assert_eq!(policy.choose(&keys, &names(&["c"])), names(&["c", "c", "c", "c"]));
        assert!(policy.choose(&keys, &[]).is_empty());
    }
}
