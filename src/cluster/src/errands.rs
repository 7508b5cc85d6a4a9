//! What every request of a training needs, and how it is sent.

use super::address::Usage;
use super::cells::Block;
use super::link::{Errand, Link};
use super::merge::Meeting;
use super::task::{Answer, Step, Task};
use datafusion::datasource::physical_plan::FileGroup;
use planetree_base::error::Result;
use planetree_base::wire::cut_short;
use std::sync::Arc;

/// What every question of a training needs.
pub struct Errands {
    /// The line.
    pub link: Arc<Link>,
    /// All but the step.
    pub task: Task,
    /// The files of each share.
    pub groups: Vec<FileGroup>,
    /// Executors when the training began.
    pub executors: usize,
    /// Their threads.
    pub threads: usize,
    /// How they are used.
    pub usage: Usage,
}

impl Errands {
    /// The answers of all shares, in their order.
    pub fn ask(&self, step: Step, is_first: bool, foundation: &dyn Fn() -> Vec<u8>) -> Result<Vec<Answer>> {
        let task = Task { step, ..self.task.clone() };
        self.link.ask(&Errand { task: &task, foundation, is_first, groups: &self.groups, meeting: None })
    }

    /// How the answers of a level meet.
    pub fn meeting(&self, weighted: bool) -> Option<Meeting> {
        let mergers = self.usage.mergers(self.groups.len());
        (mergers > 0).then_some(Meeting { mergers, weighted })
    }

    /// The blocks of a level, each of all shares or of one.
    pub fn ask_level(
        &self,
        step: Step,
        meeting: Option<Meeting>,
        is_first: bool,
        foundation: &dyn Fn() -> Vec<u8>,
    ) -> Result<Vec<Block>> {
        let task = Task { step, ..self.task.clone() };
        let errand = Errand { task: &task, foundation, is_first, groups: &self.groups, meeting };
        let answers = self.link.ask(&errand)?;
        let mut all = Vec::with_capacity(answers.len());
        for (place, answer) in answers.into_iter().enumerate() {
            match (answer, meeting) {
                (Answer::Merged { cells, .. }, Some(meeting)) => {
                    all.push(Block { number: place, of: meeting.blocks(), bytes: cells });
                }
                (Answer::Level(mut cells), None) if cells.len() == 1 => {
                    all.push(Block { number: 0, of: 1, bytes: cells.swap_remove(0) });
                }
                _ => return Err(cut_short()),
            }
        }
        Ok(all)
    }
}
