use super::*;
use datafusion::datasource::listing::PartitionedFile;
use planetree_data::source::LabelledRows;
use planetree_train::config;

fn task(step: TaskStep) -> Task {
    Task {
        build: BUILD.to_owned(),
        run: "test".to_owned(),
        data: "/nowhere/at/all".to_owned(),
        instance_credentials: false,
        fingerprint: String::new(),
        step,
    }
}

#[test]
fn what_cannot_be_answered_is_said_with_a_remedy() {
    let file = PartitionedFile::new_with_range("nowhere/part".to_owned(), 10, 3, 5);
    let group = FileGroup::new(vec![file]);
    let (number, here) = answer(&task(TaskStep::Probe), &[], &group);
    assert!(number == 3 && matches!(here, Answer::Identity(identity) if identity.build == BUILD));
    let other = Task { build: "planetree 0.0.9 cluster 1".to_owned(), ..task(TaskStep::Forget) };
    let (_, refused) = answer(&other, &[], &group);
    assert!(
        matches!(&refused, Answer::Failed { problem, remedy }
        if problem.contains("planetree 0.0.9") && remedy.contains("same build")),
        "{refused:?}"
    );
    let survey = TaskStep::Survey { features: 0..1, rows: true, parameters: String::new() };
    let (_, absent) = answer(&task(survey), &[], &group);
    assert!(
        matches!(&absent, Answer::Failed { problem, .. } if problem.contains("/nowhere/at/all")),
        "{absent:?}"
    );
    assert_eq!(Answer::from_bytes(&absent.to_bytes()).unwrap(), absent);
}

/// A share that lost its state produces the same sums as one that followed from the start.
#[test]
fn a_share_built_anew_says_what_the_one_before_said() {
    let parameters = config::load(Some("planet"), None, &["max_bin=20".to_owned()]).unwrap();
    let boost = parameters.with(parameters.boost().unwrap().clone());
    let options = BinOptions::of(&parameters);
    let values: Vec<Vec<f32>> =
        (0..3u32).map(|f| (0..200u32).map(|row| ((row * (7 + f)) % 41) as f32).collect()).collect();
    let labels: Vec<f32> = (0..200u32).map(|row| (row % 5) as f32).collect();
    let data = || Arc::new(BinnedData::of_values(&values, &labels, 64, &options));
    let state = |rows: &[LabelledRows]| WorkerState {
        scores: Scores::constant(rows, 2.0),
        metrics: None,
        gradients: RowGradients::new(None, rows),
    };
    let following = || {
        let data = data();
        let state = state(&data.rows);
        let share = AnyShare::Plain(LocalWorker::new(&boost, data, state));
        CachedShare { share, bytes: 0, trees: 0, round: None, tree: None }
    };
    let gradients = TaskStep::Gradients { round: 1, trees: 0, last: None };
    let mut first = following();
    let Some(Answer::Gradients { parts, .. }) = first.step(&gradients).unwrap() else { panic!() };
    assert_eq!(parts.len(), 4);
    let scale = planetree_train::GradientSummary::of_parts(&parts).scale(200);
    let start =
        TreeStart { tree: 1, scale, groups: (0..data().binning.layout.groups.len()).collect(), limit: None };
    let split = |node, left, code| NodeSplit {
        node,
        left,
        split: planetree_train::tree::FoundSplit {
            feature: 1,
            code,
            threshold: 0.0,
            missing_code: None,
            missing_left: false,
            gain: 1.0,
        },
    };
    let all = [split(0, 1, 9), split(1, 3, 4)];
    let level = |splits: &[NodeSplit], wanted: &[usize]| TaskStep::Level {
        trees: 0,
        start: start.clone(),
        splits: splits.to_vec(),
        wanted: wanted.to_vec(),
        groups: start.groups.clone(),
        blocks: 1,
    };
    let root = first.step(&level(&[], &[0])).unwrap();
    let second = first.step(&level(&all[..1], &[1])).unwrap();
    let third = first.step(&level(&all, &[3, 4])).unwrap();
    assert!(root.is_some() && third.is_some());
    // The same answer when repeated, when behind and when rebuilt.
    assert_eq!(first.step(&level(&all, &[3, 4])).unwrap(), third);
    assert_eq!(first.step(&level(&all[..1], &[1])).unwrap(), second);
    assert_eq!(following().step(&level(&all, &[3, 4])).unwrap(), third);
    assert_eq!(following().step(&level(&[], &[0])).unwrap(), root);
    // A step that builds on missing trees is not executed.
    assert_eq!(following().step(&TaskStep::Gradients { round: 3, trees: 2, last: None }).unwrap(), None);
}
