//! Tests of stages, runs and targets from all sources.

use super::plan::{
    ClassScores, ClassWeights, LeastSquaresData, OrdinalTarget, StageStart, Target, TrainingPlan,
};
use super::*;
use planetree_base::error::Result;
use planetree_base::storage::Location;

fn plan(preset: &str, set: &[&str]) -> Result<TrainingPlan> {
    load(Some(preset), None, &set.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
}

fn of_file(text: &str, set: &[&str]) -> Result<TrainingPlan> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("train.toml");
    std::fs::write(&path, text).unwrap();
    let set: Vec<String> = set.iter().map(|text| (*text).to_owned()).collect();
    load(None, Some(&Location::Local(path)), &set)
}

fn refused(outcome: Result<TrainingPlan>, problem: &str, remedy: &str) {
    let error = outcome.unwrap_err();
    assert!(error.to_string().contains(problem), "{error}");
    assert!(error.remedy().unwrap_or_default().contains(remedy), "{:?}", error.remedy());
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn presets_of_several_parts_have_the_settings_of_their_papers() {
    let igbrt = plan("igbrt", &[]).unwrap();
    let [forest, boosting] = igbrt.stages.as_slice() else { panic!("{igbrt:?}") };
    assert!(forest.forest().is_some_and(|forest| forest.bootstrap));
    assert_eq!((forest.num_trees, boosting.num_trees), (10_000, 500));
    assert_eq!(boosting.boost().map(|boost| boost.learning_rate), Some(0.1));
    assert_eq!((igbrt.runs, &igbrt.target, igbrt.stage_start), (1, &Target::Labels, StageStart::InSample));
    let averaged = plan("avg-ksgbrt", &[]).unwrap();
    let (boost, tree) = (averaged.first().boost().unwrap(), averaged.first().tree().unwrap());
    assert_eq!((averaged.runs, boost.learning_rate, averaged.first().num_trees), (10, 0.2, 1000));
    assert_eq!((tree.features_per_node, tree.max_depth), (FeatureCount::Fraction(0.1), Some(3)));
    let stochastic = plan("sgbrt", &[]).unwrap();
    assert_eq!((stochastic.first().tree().unwrap().sampling.fraction, stochastic.runs), (0.5, 1));
    assert_eq!(stochastic.first().boost().unwrap().base_score, BaseScore::Constant(0.0));
    let bagged = plan("bagboost", &[]).unwrap();
    assert!(bagged.runs > 1 && bagged.first().tree().unwrap().sampling.per_run);
}

#[test]
fn every_preset_of_the_paper_can_learn_classes() {
    for preset in ["gbrt", "sgbrt", "ksgbrt", "avg-ksgbrt", "rf", "igbrt"] {
        assert!(matches!(plan(preset, &["target=ordinal"]).unwrap().target, Target::Ordinal(_)), "{preset}");
    }
}

#[test]
fn classes_of_a_softmax_follow_from_the_objective() {
    let mcrank = plan("mcrank", &[]).unwrap();
    assert_eq!(mcrank.target, Target::Classes(ClassScores::Expected));
    assert!(mcrank.only().is_none());
    let other =
        plan("mart", &["objective=multiclass", "class_scores=exp2", "runs=2", "feature_fraction=0.5"]);
    let other = other.unwrap();
    assert_eq!((&other.target, other.runs), (&Target::Classes(ClassScores::Exp2), 2));
    assert_eq!(TrainingPlan::from_toml(&other.to_toml()).unwrap(), other);
    assert!(!other.to_toml().contains("target"), "{}", other.to_toml());
    refused(plan("mcrank", &["class_weights=ols:train"]), "only target=ordinal uses it", "remove it");
    refused(plan("mcrank", &["target=ordinal"]), "classes are learned by squared error", "objective=squared");
    refused(plan("mcrank", &["target=at_most:1"]), "target = at_most:1: classes are learned", "");
    refused(plan("mcrank", &["base_score=feature:f1"]), "objective = softmax_classes: base_score", "remove");
    refused(plan("igbrt", &["stage.2.objective=softmax_classes"]), "in a single stage", "target=ordinal");
}

#[test]
fn settings_reach_a_stage_or_all_of_them() {
    let set = ["stage.1.num_trees=7", "stage.2.eta=0.5", "seed=3", "metric=err", "start_scores=oob"];
    let plan = plan("igbrt", &set).unwrap();
    assert_eq!((plan.stages[0].num_trees, plan.stages[1].num_trees), (7, 500));
    assert_eq!(plan.stages[1].boost().unwrap().learning_rate, 0.5);
    assert_eq!(plan.stage_start, StageStart::OutOfBag);
    for stage in &plan.stages {
        assert_eq!((stage.seed, stage.metrics.len()), (3, 1));
    }
    let single = load(None, None, &["stage.1.num_trees=4".to_owned()]).unwrap();
    assert_eq!(single.first().num_trees, 4);
}

#[test]
fn stages_of_a_file() {
    let text = "runs = 3\nmissing = 'learned'\n[[stage]]\npreset = 'rf'\nnum_trees = 5\n\n[[stage]]\nbagging_fraction = 0.5\n";
    let plan = of_file(text, &["stage.2.num_trees=9", "target=ordinal"]).unwrap();
    assert_eq!((plan.runs, plan.stages.len()), (3, 2));
    assert_eq!((plan.stages[0].num_trees, plan.stages[1].num_trees), (5, 9));
    assert!(plan.stages.iter().all(|stage| stage.missing == MissingPolicy::Learned));
    assert_eq!(plan.stages[1].boost().unwrap().learning_rate, 0.06, "the stage has the default preset");
}

#[test]
fn printed_plans_parse_to_the_same() {
    for (preset, set) in [
        ("igbrt", vec!["runs=4", "start_scores=oob", "stage.2.max_depth=5"]),
        ("igbrt", vec!["target=ordinal", "class_scores=0,1,3", "class_weights=ols:both"]),
        ("avg-ksgbrt", vec!["target=ordinal", "class_weights=-1,-0.5,2"]),
        ("sgbrt", vec!["target=at_most:-1"]),
        ("bagboost", vec!["class_scores=exp2", "target=ordinal"]),
        ("planet", vec![]),
    ] {
        let plan = plan(preset, &set).unwrap();
        let text = plan.to_toml();
        assert_eq!(TrainingPlan::from_toml(&text).unwrap(), plan, "{text}");
    }
    let planet = plan("planet", &[]).unwrap();
    assert_eq!(planet.to_toml(), planet.first().to_toml());
    let ordinal = plan("rf", &["target=ordinal", "class_weights=ols:valid"]).unwrap().target;
    let weights = ClassWeights::LeastSquares(LeastSquaresData::Valid);
    assert_eq!(ordinal, Target::Ordinal(OrdinalTarget { scores: ClassScores::Expected, weights }));
}

#[test]
fn plans_that_make_no_sense_are_refused() {
    refused(
        plan("igbrt", &["num_trees=5"]),
        "--set num_trees=5: the training has 2 stages",
        "set stage.1.num_trees or stage.2.num_trees in place of num_trees",
    );
    refused(plan("igbrt", &["stage.3.num_trees=5"]), "there is no stage 3", "the stages are 1 to 2");
    refused(plan("planet", &["stage.2.num_trees=5"]), "there is no stage 2", "a single stage");
    refused(plan("igbrt", &["stage.x.num_trees=5"]), "no number of a stage", "stage.N.key=value");
    refused(
        plan("igbrt", &["stage.2.lerning_rate=5"]),
        "unknown parameter \"lerning_rate\"",
        "learning_rate",
    );
    refused(plan("igbrt", &["stage.2.num_trees=0"]), "stage 2: --set stage.2.num_trees=0: expected", "");
    refused(
        plan("igbrt", &["stage.2.ensemble=bag"]),
        "stage 2: a forest cannot follow",
        "make the forest stage 1",
    );
    refused(plan("igbrt", &["stage.2.base_score=1"]), "stage 2: base_score conflicts", "remove base_score");
    refused(plan("igbrt", &["stage.2.missing=one"]), "stage 2: missing values", "set missing once");
    refused(plan("gbrt", &["runs=3"]), "runs = 3: no stage draws random numbers", "features_per_node=0.1");
    refused(
        plan("gbrt", &["runs=0"]),
        "--set runs=0: expected a whole number from 1 to 1000",
        "the default is 1",
    );
    refused(plan("gbrt", &["target=ordnal"]), "expected labels, ordinal or at_most:GRADE", "");
    refused(plan("gbrt", &["class_scores=square"]), "only models of classes use it", "set target=ordinal");
    refused(plan("lambdamart", &["target=ordinal"]), "squared error on 0 and 1", "set objective=squared");
    refused(plan("rf-pair", &["target=ordinal"]), "a pairwise forest has no classes", "pairs_per_document=0");
    refused(plan("rf-list", &["target=ordinal"]), "a listwise forest has no classes", "criterion=variance");
    refused(plan("gbrt", &["start_scores=oob"]), "need a forest as stage 1", "remove start_scores");
    refused(of_file("preset = 'igbrt'\n[[stage]]\n", &[]), "preset igbrt has stages of its own", "[[stage]]");
    refused(of_file("[[stage]]\npreset = 'igbrt'\n", &[]), "preset igbrt is no single stage", "its stages");
    refused(
        of_file("[[stage]]\nruns = 3\n", &[]),
        "runs applies to all stages together",
        "before the first [[stage]]",
    );
    refused(of_file("[stage]\nnum_trees = 3\n", &[]), "stage is not a list of tables", "[[stage]]");
    refused(
        of_file("num_trees = 3\n[[stage]]\n[[stage]]\n", &[]),
        "the training has 2 stages",
        "stage.2.num_trees",
    );
}
