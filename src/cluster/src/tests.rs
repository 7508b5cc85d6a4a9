//! Tests training, prediction and evaluation on a cluster whose executors run in this process. The tests cover
//! everything except the engine's scheduling.

use super::codec::RoundCodec;
use super::{Address, Cluster, Security};
use arrow::array::RecordBatch;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion_proto::physical_plan::AsExecutionPlan;
use datafusion_proto::protobuf::PhysicalPlanNode;
use planetree_base::storage::Location;
use planetree_data::convert::convert_text;
use planetree_data::dataset::DatasetReader;
use planetree_data::ingest::InputFormat;
use planetree_judge::evaluate::{EvaluateRequest, Ranking, RemoteEvaluator, evaluate};
use planetree_metric::{Convention, Metric};
use planetree_model::model::Model;
use planetree_model::predict::{PredictedGroup, PredictionsTable, predict};
use planetree_train::config::TrainingPlan;
use planetree_train::{GivenScores, Silent, TrainRequest, config, train};
use std::path::Path;
use std::sync::Arc;

/// The scheduler address for which plans are executed by this process.
pub(crate) const THIS_PROCESS: &str = "127.0.0.1:1";

/// Executes a plan after encoding and decoding it, as a cluster would.
pub(crate) async fn execute(plan: Arc<dyn ExecutionPlan>) -> datafusion::error::Result<Vec<RecordBatch>> {
    let (codec, context) = (RoundCodec::default(), Arc::new(TaskContext::default()));
    let message = PhysicalPlanNode::try_from_physical_plan(plan, &codec)?;
    collect(message.try_into_physical_plan(&context, &codec)?, context).await
}

fn cluster(usage: &str) -> Arc<Cluster> {
    let address = Address::parse(&format!("df://{THIS_PROCESS}{usage}")).unwrap();
    Arc::new(Cluster::new(address, Security::default(), 2, false))
}

/// Creates a dataset of queries with graded documents. Some values are missing, one feature has few distinct values and
/// another has many.
fn dataset(room: &Path) -> DatasetReader {
    dataset_of(room, "")
}

/// Creates a dataset like [`dataset`], with a prefix of its query ids.
fn dataset_of(room: &Path, prefix: &str) -> DatasetReader {
    let mut text = String::new();
    for row in 0..900u32 {
        let noise = |salt: u32| (row.wrapping_mul(2_654_435_761).wrapping_add(salt * 7919) >> 9) % 1000;
        let label = noise(1) % 5;
        text.push_str(&format!("{label} qid:{prefix}{}", row / 15));
        for feature in 1..=6 {
            let value = match feature {
                1 => label * 100 + noise(2) % 150,
                2 => noise(3) % 4,
                _ => noise(feature) * (1 + label % feature),
            };
            if noise(40 + feature) % 9 > 0 {
                text.push_str(&format!(" {feature}:{}", f64::from(value) / 8.0));
            }
        }
        text.push('\n');
    }
    DatasetReader::open(&convert_text(room, "dataset", &text, InputFormat::Letor, 100).unwrap()).unwrap()
}

/// Trains a model and returns it together with its log.
fn trained(data: &DatasetReader, preset: &str, on: Option<&Arc<Cluster>>) -> (Model, String) {
    trained_from(data, preset, None, on)
}

/// Trains a model that starts from another one.
fn trained_from(
    data: &DatasetReader,
    preset: &str,
    start: Option<Model>,
    on: Option<&Arc<Cluster>>,
) -> (Model, String) {
    let (preset, settings) = preset.split_once(' ').unwrap_or((preset, ""));
    let mut all: Vec<String> = settings.split_whitespace().map(str::to_owned).collect();
    all.push("num_trees=3".to_owned());
    if !preset.contains("linear") {
        all.push("min_data_in_leaf=5".to_owned());
    }
    let parameters = config::load(Some(preset), None, &all).unwrap();
    let mut request = TrainRequest::new(data.location().clone(), parameters);
    request.start = start;
    request.backend = on.map(|cluster| cluster.clone() as Arc<dyn planetree_train::Backend>);
    let outcome = train(&request, &mut Silent).unwrap();
    let log = outcome.log.iter().map(|entry| format!("{} {:?}\n", entry.round, entry.value));
    let log = if preset.starts_with("rf") { String::new() } else { log.collect() };
    (outcome.model, log)
}

#[test]
fn a_cluster_in_this_process_trains_the_same_models() {
    let room = tempfile::tempdir().unwrap();
    let data = dataset(room.path());
    for preset in [
        "planet",
        "planet missing=learned bagging_fraction=0.7",
        "lambdamart",
        "pgbrt-grouped",
        "rf-point",
        "pgbrt-grouped workers=2",
        "pgbrt-grouped workers=4 missing=learned query_fraction=0.6",
        "pgbrt-grouped workers=30 features_per_node=3",
        "lambdamart candidates=streaming workers=3",
        "pgbrt",
        "pgbrt workers=3 num_leaves=6 max_depth=-1",
        "pgbrt workers=7 min_data_in_leaf=40",
        "pgbrt workers=100",
        "gbrt",
        "gbrt missing=learned features_per_node=0.5 bagging_fraction=0.6",
        "lambdamart candidates=exact num_leaves=7",
    ] {
        let expected = trained(&data, preset, None);
        for usage in ["", "?shares=3", "?shares=5&merge=2&overlap=2"] {
            let (model, log) = trained(&data, preset, Some(&cluster(usage)));
            assert!(model == expected.0, "{preset} {usage}");
            assert_eq!(log, expected.1, "{preset} {usage}");
        }
    }
}

/// Two stages, as in the preset igbrt, but with static bins. The second one has other bins, workers or values if asked.
fn staged(second: &str) -> TrainingPlan {
    let text = format!(
        "runs = 2\n[[stage]]\npreset = \"rf-point\"\nnum_trees = 3\nmissing = \"zero\"\n\
         [[stage]]\n{second}\nnum_trees = 3\nmissing = \"zero\"\n"
    );
    TrainingPlan::from_toml(&text).unwrap()
}

#[test]
fn a_cluster_in_this_process_trains_stages_runs_and_classes() {
    let room = tempfile::tempdir().unwrap();
    let data = dataset(room.path());
    let of_plan = |plan: TrainingPlan, on: Option<&Arc<Cluster>>| {
        let mut request =
            TrainRequest::new(data.location().clone(), plan).validate("again", data.location().clone());
        request.backend = on.map(|cluster| cluster.clone() as Arc<dyn planetree_train::Backend>);
        let outcome = train(&request, &mut Silent).unwrap();
        let log: Vec<String> = outcome
            .log
            .iter()
            .map(|entry| format!("{} {} {:?}", entry.round, entry.split, entry.value))
            .collect();
        (outcome.model, log)
    };
    let set = |preset: &str, settings: &str| {
        let all: Vec<String> = settings.split_whitespace().map(str::to_owned).collect();
        config::load(Some(preset), None, &all).unwrap()
    };
    for plan in [
        staged("preset = \"planet\""),
        staged("preset = \"planet\"\nmax_bin = 9"),
        staged("preset = \"pgbrt\"\nworkers = 3"),
        staged("preset = \"gbrt\""),
        staged("preset = \"lambdamart\"\nlearning_rate = 0.3"),
        staged("preset = \"linear\""),
        set("avg-ksgbrt", "runs=3 num_trees=3"),
        set("planet", "runs=3 bagging_fraction=0.5 num_trees=4"),
        set("lambdamart", "runs=2 bagging_fraction=0.5 num_trees=3"),
        set("planet", "target=ordinal num_trees=3"),
        set("planet", "target=at_most:2 num_trees=3 runs=2 feature_fraction=0.5"),
        set("rf-point", "target=ordinal runs=2 num_trees=3"),
        set("linear", "target=ordinal"),
        set("planet", "base_score=feature:f2 num_trees=3"),
    ] {
        let text = plan.to_toml();
        let expected = of_plan(plan.clone(), None);
        for usage in ["", "?shares=3", "?shares=5&merge=2&overlap=2"] {
            let cluster = cluster(usage);
            let (model, log) = of_plan(plan.clone(), Some(&cluster));
            assert!(model == expected.0, "{usage}\n{text}");
            assert_eq!(log, expected.1, "{usage}\n{text}");
        }
    }
}

/// Several datasets are read as one, and start scores come from each of them.
#[test]
fn a_cluster_in_this_process_trains_on_several_datasets() {
    let (room, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (data, more) = (dataset(room.path()), dataset_of(other.path(), "more"));
    let (start, _) = trained(&data, "rf-point", None);
    for (preset, start) in [("lambdamart", None), ("planet", Some(start)), ("rf-point", None)] {
        let model = |on: Option<&Arc<Cluster>>| {
            let settings = ["num_trees=3", "min_data_in_leaf=5"].map(str::to_owned);
            let plan = config::load(Some(preset), None, &settings).unwrap();
            let mut request = TrainRequest::new(data.location().clone(), plan);
            request.data.push(more.location().clone());
            request.start = start.clone();
            request.backend = on.map(|cluster| cluster.clone() as Arc<dyn planetree_train::Backend>);
            train(&request, &mut Silent).unwrap().model
        };
        assert!(model(Some(&cluster("?shares=3"))) == model(None), "{preset}");
    }
}

#[test]
fn a_cluster_in_this_process_starts_from_a_model() {
    let room = tempfile::tempdir().unwrap();
    let data = dataset(room.path());
    for start in ["planet", "rf-point", "rf-pair", "linear"] {
        let (start, _) = trained(&data, start, None);
        for preset in ["planet", "lambdamart learning_rate=0.3", "pgbrt workers=2", "linear"] {
            let expected = trained_from(&data, preset, Some(start.clone()), None);
            for usage in ["", "?shares=4"] {
                let model = trained_from(&data, preset, Some(start.clone()), Some(&cluster(usage)));
                assert!(model == expected, "{preset} {usage}");
            }
        }
    }
}

/// The scores of a file are sent to the executors, which add them to those of earlier stages.
#[test]
fn a_cluster_in_this_process_starts_from_given_scores() {
    let (room, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (data, more) = (dataset(room.path()), dataset_of(other.path(), "more"));
    let score = |row: u32| f64::from(row.wrapping_mul(2_654_435_761) >> 12) / 1e6 - 0.5;
    let given = GivenScores {
        training: (0..1800).map(score).collect(),
        validation: vec![(0..900).map(score).collect()],
    };
    let stages =
        "[[stage]]\npreset = \"planet\"\nnum_trees = 2\n[[stage]]\npreset = \"lambdamart\"\nnum_trees = 2\n";
    let set = |preset: &str, settings: &str| {
        let all: Vec<String> = settings.split_whitespace().map(str::to_owned).collect();
        config::load(Some(preset), None, &all).unwrap()
    };
    for plan in [
        set("planet", "num_trees=3"),
        set("lambdamart", "num_trees=3"),
        set("pgbrt", "num_trees=3 workers=2"),
        set("linear", ""),
        set("planet", "num_trees=3 runs=2 bagging_fraction=0.5"),
        TrainingPlan::from_toml(stages).unwrap(),
    ] {
        let text = plan.to_toml();
        let outcome = |on: Option<&Arc<Cluster>>| {
            let mut request = TrainRequest::new(data.location().clone(), plan.clone())
                .validate("again", data.location().clone());
            request.data.push(more.location().clone());
            request.start_scores = Some(given.clone());
            request.backend = on.map(|cluster| cluster.clone() as Arc<dyn planetree_train::Backend>);
            let outcome = train(&request, &mut Silent).unwrap();
            let log: Vec<String> =
                outcome.log.iter().map(|entry| format!("{} {:?}", entry.split, entry.value)).collect();
            (outcome.model, log)
        };
        let expected = outcome(None);
        for usage in ["", "?shares=3"] {
            let found = outcome(Some(&cluster(usage)));
            assert!(found.0 == expected.0, "{usage}\n{text}");
            assert_eq!(found.1, expected.1, "{usage}\n{text}");
        }
    }
}

/// The cache limit leaves room for one state only, so that states are evicted and rebuilt all the time.
#[test]
fn a_cluster_in_this_process_rebuilds_lost_states() {
    let room = tempfile::tempdir().unwrap();
    let data = dataset(room.path());
    super::executor::set_limit(1);
    for preset in [
        "lambdamart",
        "pgbrt workers=3",
        "pgbrt-grouped workers=2",
        "planet target=ordinal runs=2 bagging_fraction=0.5",
        "planet base_score=feature:f2",
        "gbrt runs=2 features_per_node=0.5",
    ] {
        let cluster = cluster("?shares=3");
        assert!(trained(&data, preset, Some(&cluster)) == trained(&data, preset, None), "{preset}");
        assert!(cluster.traffic().rebuilt > 0);
    }
    super::executor::set_limit(u64::MAX);
}

#[test]
fn a_cluster_in_this_process_predicts_and_evaluates_the_same() {
    let room = tempfile::tempdir().unwrap();
    let data = dataset(room.path());
    let (model, _) = trained(&data, "lambdamart", None);
    let (model_file, table_file) = (room.path().join("model"), room.path().join("predictions"));
    let (model_place, place) = (Location::Local(model_file.clone()), Location::Local(table_file.clone()));
    model.write(&model_place).unwrap();
    let model_bytes = std::fs::read(model_file).unwrap();
    let predicted = |on: Option<&Arc<Cluster>>| {
        let mut table = PredictionsTable::create(&place).unwrap();
        let sink = &mut |group: PredictedGroup| table.write(group);
        let report = match on {
            None => predict(&data, &model, 2, sink),
            Some(cluster) => cluster.predict(&data, &model, &model_bytes, false, sink),
        };
        assert_eq!(report.unwrap().rows, 900);
        table.finish(&model_place, &model, &data).unwrap();
        std::fs::read(&table_file).unwrap()
    };
    let evaluated = |on: Option<&Arc<Cluster>>| {
        let metrics = vec![Metric::Ndcg(Some(10)), Metric::Rmse];
        let mut request = EvaluateRequest::new(metrics, Convention::default());
        request.gains = true;
        request.remote = on.map(|cluster| cluster.clone() as Arc<dyn RemoteEvaluator>);
        evaluate(&Ranking::Predictions(place.clone()), &request).unwrap()
    };
    let expected = (predicted(None), evaluated(None));
    for usage in ["", "?shares=4"] {
        let cluster = cluster(usage);
        assert!(predicted(Some(&cluster)) == expected.0, "{usage}");
        assert_eq!(evaluated(Some(&cluster)), expected.1, "{usage}");
    }
}
