//! The members of a training plan: one per class and run.

use super::grades::{Grades, class_weights};
use crate::config::{ClassScores, OrdinalTarget, Parameters, Target, TrainingPlan};
use crate::driver::CoupledClass;
use planetree_base::error::Result;
use planetree_base::random::Stream;
use planetree_data::source::LabelledData;
use planetree_model::model::{ClassBounds, Link, Normalisation, Part, PartGroup, PartRole};

const OF_RUNS: u64 = 0x736E_7552;

/// One class of one run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MemberPlan {
    /// The class; `None` if the labels themselves are learned.
    pub class: Option<ClassBounds>,
    /// Index of the class.
    pub class_number: Option<usize>,
    /// Number of the run, from 1.
    pub run: u32,
    /// The grade, if it is one of the classes of a softmax.
    pub grade: Option<i32>,
    /// The factor of the member's scores, or of its probability.
    pub weight: f64,
}

/// All members of a training plan, class by class. Those of a softmax are run by run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlannedMembers {
    /// The members.
    pub all: Vec<MemberPlan>,
    /// The constant to which the weighted scores of the members are added.
    pub intercept: f64,
    /// The members that are coupled by a softmax, as groups of the model's parts.
    pub groups: Vec<PartGroup>,
}

impl PlannedMembers {
    /// Lists the members. Classes follow from the labels of the training data.
    pub(super) fn of(plan: &TrainingPlan, source: &LabelledData) -> Result<Self> {
        match &plan.target {
            Target::Labels | Target::AtMost(_) => {
                let weight = 1.0 / f64::from(plan.runs);
                let member = |run| MemberPlan { class: None, class_number: None, run, grade: None, weight };
                let all = (1..=plan.runs).map(member).collect();
                Ok(PlannedMembers { all, intercept: 0.0, groups: Vec::new() })
            }
            Target::Ordinal(ordinal) => Self::ordinal(plan, ordinal, &Grades::read(&plan.target, source)?),
            Target::Classes(scores) => Self::softmax(plan, scores, &Grades::read(&plan.target, source)?),
        }
    }

    fn ordinal(plan: &TrainingPlan, ordinal: &OrdinalTarget, grades: &Grades) -> Result<Self> {
        let runs = f64::from(plan.runs);
        let (weights, intercept) = class_weights(ordinal, grades)?;
        let mut all = Vec::new();
        for (number, (class, weight)) in grades.classes().zip(weights).enumerate() {
            let member = |run| MemberPlan {
                class: Some(class),
                class_number: Some(number),
                run,
                grade: None,
                weight: weight / runs,
            };
            all.extend((1..=plan.runs).map(member));
        }
        Ok(PlannedMembers { all, intercept, groups: Vec::new() })
    }

    fn softmax(plan: &TrainingPlan, scores: &ClassScores, grades: &Grades) -> Result<Self> {
        let scores = grades.scores(scores)?;
        let (mut all, mut groups) = (Vec::new(), Vec::new());
        for run in 1..=plan.runs {
            groups.push(PartGroup {
                name: if plan.runs > 1 { format!("run_{run}") } else { "classes".to_owned() },
                first_part: all.len(),
                parts: scores.len(),
                link: Link::Softmax,
                intercept: 0.0,
                normalisation: Normalisation::None,
                weight: 1.0 / f64::from(plan.runs),
            });
            let classes = grades.all().iter().zip(&scores).enumerate();
            all.extend(classes.map(|(number, (grade, score))| MemberPlan {
                class: None,
                class_number: Some(number),
                run,
                grade: Some(*grade),
                weight: *score,
            }));
        }
        Ok(PlannedMembers { all, intercept: 0.0, groups })
    }

    /// Returns the class of a member that is coupled with others.
    pub(super) fn coupled(&self, number: usize) -> Option<CoupledClass> {
        let members = self.groups.iter().map(PartGroup::range).find(|members| members.contains(&number))?;
        Some(CoupledClass { grade: self.all[number].grade?, members })
    }

    /// Returns the classes of a softmax in ascending order.
    pub(super) fn coupled_classes(&self) -> impl Iterator<Item = CoupledClass> {
        let first = self.groups.first().map_or(0..0, PartGroup::range);
        first.filter_map(move |number| self.coupled(number))
    }

    /// Returns the classes in ascending order.
    pub(super) fn classes(&self) -> impl Iterator<Item = ClassBounds> {
        self.all.iter().filter(|member| member.run == 1).filter_map(|member| member.class)
    }
}

impl MemberPlan {
    /// Returns the parameters of this member in a stage. Run 1 has the seed of the stage; the seeds of the others are
    /// derived from it. Where the score falls when the probability of a class rises, monotone constraints of the class are
    /// the opposite ones.
    pub(super) fn parameters(&self, stage: &Parameters) -> Parameters {
        let seed = match self.run {
            1 => stage.seed,
            // 53 bits, so that the seed is a whole number for every program that reads the configuration.
            run => Stream::new(&[stage.seed, OF_RUNS, u64::from(run)]).bits() >> 11,
        };
        let parameters = Parameters { seed, ..stage.clone() };
        match stage.tree().map(|tree| &tree.monotone).filter(|_| self.class.is_some() && self.weight < 0.0) {
            Some(monotone) => parameters.with_monotone(monotone.reversed()),
            None => parameters,
        }
    }

    /// Returns the configuration with which this member's part of a stage can be trained by itself. The classes of a
    /// softmax have that of their run.
    pub(super) fn configuration(&self, stage: &Parameters, plan: &TrainingPlan) -> String {
        let target = match self.class {
            Some(class) => Target::AtMost(class.at_most),
            None => plan.target.clone(),
        };
        TrainingPlan { target, ..TrainingPlan::from(self.parameters(stage)) }.to_toml()
    }

    /// Returns the role of this member's part in a stage.
    pub(super) fn role(&self, stage: u32) -> PartRole {
        PartRole { stage, run: self.run, class: self.class, grade: self.grade }
    }

    /// Returns whether a part belongs to this member, in any stage.
    pub(super) fn is_of(&self, part: &Part) -> bool {
        part.role.is_some_and(|role| (role.run, role.class, role.grade) == (self.run, self.class, self.grade))
    }

    /// Returns the name of this member's part in a stage.
    pub(super) fn name(&self, stage: u32, plan: &TrainingPlan) -> String {
        let class = self.class.map(|class| format!("at_most_{}", class.at_most));
        let class = class.or(self.grade.map(|grade| format!("class_{grade}")));
        let stage = (plan.stages.len() > 1).then(|| format!("stage_{stage}"));
        let run = (plan.runs > 1).then(|| format!("run_{}", self.run));
        let words: Vec<String> = [stage, class, run].into_iter().flatten().collect();
        words.join(".")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load;

    #[test]
    fn seeds_of_runs_differ_and_the_first_is_that_of_the_plan() {
        let plan = load(Some("rf"), None, &["seed=7".to_owned()]).unwrap();
        let member = |run| MemberPlan { class: None, class_number: None, run, grade: None, weight: 1.0 };
        let mut seeds: Vec<u64> = (1..=100).map(|run| member(run).parameters(plan.first()).seed).collect();
        assert_eq!(seeds[0], 7);
        assert!(seeds.iter().all(|seed| *seed < 1 << 53));
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 100);
    }

    #[test]
    fn a_member_can_be_trained_by_its_configuration() {
        let set = ["target=ordinal", "runs=3", "num_trees=5"].map(str::to_owned);
        let plan = load(Some("rf"), None, &set).unwrap();
        let class = Some(ClassBounds { at_most: 2, next: 3 });
        let member = MemberPlan { class, class_number: Some(2), run: 3, grade: None, weight: 1.0 };
        let alone = TrainingPlan::from_toml(&member.configuration(plan.first(), &plan)).unwrap();
        assert_eq!((alone.target, alone.runs), (Target::AtMost(2), 1));
        assert_eq!(alone.stages, [member.parameters(plan.first())]);
    }
}
