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
use planetree_data::convert::{ConvertOptions, MIN_MEMORY, QuerySample, convert};
use planetree_data::dataset::DatasetReader;
use planetree_data::ingest::{Ingest, IngestOptions, Input, InputFormat, RoleOptions};
use planetree_judge::evaluate::{EvaluateRequest, Ranking, RemoteEvaluator, evaluate};
use planetree_metric::{Convention, Metric};
use planetree_model::model::Model;
use planetree_model::predict::{PredictedGroup, PredictionsTable, predict};
use planetree_train::{Silent, TrainRequest, config, train};
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
    let mut text = String::new();
    for row in 0..900u32 {
        let noise = |salt: u32| (row.wrapping_mul(2_654_435_761).wrapping_add(salt * 7919) >> 9) % 1000;
        let label = noise(1) % 5;
        text.push_str(&format!("{label} qid:{}", row / 15));
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
    let (input, output) = (room.join("input"), Location::Local(room.join("dataset")));
    std::fs::write(&input, text).unwrap();
    let ingest = IngestOptions {
        format: Some(InputFormat::Letor),
        index_base: 1,
        max_features: 1000,
        lenient: false,
        feature_names: None,
        roles: RoleOptions::default(),
        delimiter: None,
        decimal_comma: false,
        header: true,
        description: None,
        chunk_bytes: 1 << 20,
    };
    let options = ConvertOptions {
        output: output.clone(),
        overwrite: false,
        partition_rows: Some(100),
        threads: 1,
        sort_queries: false,
        max_errors: None,
        query_sample: QuerySample::ALL,
        zero_as_missing: planetree_data::convert::ZeroAsMissing::None,
        memory_limit: MIN_MEMORY,
        categories: Vec::new(),
    };
    let ingest = Ingest::open(vec![Input::at(Location::Local(input))], ingest).unwrap();
    convert(ingest, &options, &mut |_| {}).unwrap();
    DatasetReader::open(&output).unwrap()
}

/// Trains a model and returns it together with its log.
fn trained(data: &DatasetReader, preset: &str, on: Option<&Arc<Cluster>>) -> (Model, String) {
    let (preset, settings) = preset.split_once(' ').unwrap_or((preset, ""));
    let mut all: Vec<String> = settings.split_whitespace().map(str::to_owned).collect();
    all.extend(["num_trees=3", "min_data_in_leaf=5"].map(str::to_owned));
    let parameters = config::load(Some(preset), None, &all).unwrap();
    let mut request = TrainRequest::new(data.location().clone(), parameters);
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
    ] {
        let expected = trained(&data, preset, None);
        for usage in ["", "?shares=3", "?shares=5&merge=2&overlap=2"] {
            let (model, log) = trained(&data, preset, Some(&cluster(usage)));
            assert!(model == expected.0, "{preset} {usage}");
            assert_eq!(log, expected.1, "{preset} {usage}");
        }
    }
}

/// The cache limit leaves room for one state only, so that states are evicted and rebuilt all the time.
#[test]
fn a_cluster_in_this_process_rebuilds_lost_states() {
    let room = tempfile::tempdir().unwrap();
    let data = dataset(room.path());
    super::executor::set_limit(1);
    for preset in ["lambdamart", "pgbrt workers=3", "pgbrt-grouped workers=2"] {
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
