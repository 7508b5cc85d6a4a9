//! Evaluations agree with a naive reference, for any order of the rows and any source.

use crate::support::*;
use arrow::array::{ArrayRef, Float32Array, Float64Array, Int32Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use planetree::metric::Convention;
use planetree::random::Stream;
use planetree::storage::Location;
use planetree::table::{TableKind, TableWriter};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// A ranked document.
#[derive(Clone)]
struct Ranked {
    query: String,
    document: Option<String>,
    label: Option<f32>,
    score: f64,
}

/// Queries of 1 to 60 documents, some without relevant documents; scores without ties.
fn rankings(seed: u64, queries: usize) -> Vec<Ranked> {
    let mut rows = Vec::new();
    for query in 0..queries {
        let mut draw = Stream::new(&[seed, query as u64]);
        let documents = 1 + draw.bits() as usize % 60;
        let is_empty = draw.uniform() < 0.1;
        for document in 0..documents {
            let label = if is_empty { 0.0 } else { (draw.uniform() * draw.uniform() * 5.0).floor() };
            rows.push(Ranked {
                query: format!("q{query}"),
                document: Some(format!("d{query}-{document}")),
                label: Some(label as f32),
                score: 0.3 * label + draw.normal(),
            });
        }
    }
    rows
}

fn batch(rows: &[Ranked]) -> RecordBatch {
    let columns: [(&str, ArrayRef, bool); 5] = [
        ("query_id", Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.query))), false),
        ("doc_id", Arc::new(StringArray::from_iter(rows.iter().map(|row| row.document.as_deref()))), true),
        ("label", Arc::new(Float32Array::from_iter(rows.iter().map(|row| row.label))), true),
        ("score", Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.score))), false),
        ("rank", Arc::new(Int32Array::from_iter_values(rows.iter().map(|_| 1))), false),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// Writes predictions as `planetree predict` does.
fn write_ours(directory: &Path, name: &str, rows: &[Ranked]) {
    let batch = batch(rows);
    let location = Location::Local(directory.join(name));
    let mut writer = TableWriter::create(&location, TableKind::Predictions, batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
}

/// Writes the same rows as a plain Parquet file.
fn write_foreign(directory: &Path, name: &str, batch: &RecordBatch) {
    let file = fs::File::create(directory.join(name)).unwrap();
    let properties = parquet::file::properties::WriterProperties::builder();
    let properties = properties.set_max_row_group_row_count(Some(1000)).build();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn shuffled(rows: &[Ranked], seed: u64) -> Vec<Ranked> {
    let mut draw = Stream::new(&[seed]);
    let mut keyed: Vec<(u64, &Ranked)> = rows.iter().map(|row| (draw.bits(), row)).collect();
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, row)| row.clone()).collect()
}

fn evaluated(directory: &Path, arguments: &str) -> Value {
    let ran = run(directory, &format!("--quiet evaluate --json {arguments}")).ok();
    serde_json::from_str(&ran.stdout).unwrap()
}

fn check(directory: &Path, arguments: &str) -> Option<String> {
    reference_script(directory, "evaluate.py", arguments)
}

#[test]
fn metrics_agree_with_a_naive_reference() {
    let room = room();
    let at = room.path();
    write_ours(at, "p.parquet", &rankings(1, 400));
    let report = run(at, "--quiet evaluate --predictions p.parquet --output m.parquet --json").ok().stdout;
    fs::write(at.join("report.json"), report).unwrap();
    let Some(summary) = check(at, "truth p.parquet m.parquet report.json") else { return };
    assert!(summary.starts_with("400 queries"), "{summary}");
    let described = run(at, "describe m.parquet --json").ok().stdout;
    let described: Value = serde_json::from_str(&described).unwrap();
    let report: Value = serde_json::from_slice(&fs::read(at.join("report.json")).unwrap()).unwrap();
    assert_eq!(described["convention"], "planetree");
    assert_eq!(described["means"][0]["metric"], "ndcg@10");
    let mean = described["means"][0]["mean"].as_f64().unwrap();
    assert_close(mean, report["systems"][0]["means"]["ndcg@10"].as_f64().unwrap(), 1e-12, "described");
}

#[test]
fn results_do_not_depend_on_order_threads_memory_or_writer() {
    let room = room();
    let at = room.path();
    let rows = rankings(2, 3000);
    write_ours(at, "ours", &rows);
    write_ours(at, "shuffled", &shuffled(&rows, 3));
    write_foreign(at, "foreign", &batch(&rows));
    write_foreign(at, "foreign-shuffled", &batch(&shuffled(&rows, 4)));
    let systems = |report: &Value| {
        let mut system = report["systems"][0].clone();
        for key in ["name", "ranking", "worst"] {
            system.as_object_mut().unwrap().remove(key);
        }
        system
    };
    let metrics = "--metrics ndcg@10,err,map,mrr,p@5,recall@10,auc";
    let first = evaluated(at, &format!("--predictions ours --threads 1 --output first {metrics}"));
    let again = evaluated(at, &format!("--predictions ours --threads 3 --output again {metrics}"));
    assert_eq!(first, again);
    assert!(fs::read(at.join("first")).unwrap() == fs::read(at.join("again")).unwrap());
    for (name, options) in [
        ("foreign", "--threads 2"),
        ("shuffled", "--threads 1"),
        ("shuffled", "--threads 3"),
        ("foreign-shuffled", "--threads 2 --memory-limit 96MiB"),
    ] {
        let report = evaluated(at, &format!("--predictions {name} {options} --output other {metrics}"));
        assert_eq!(systems(&report), systems(&first), "{name} {options}");
        let (other, first) = (sorted_rows(&at.join("other")), sorted_rows(&at.join("first")));
        assert_eq!(other, first, "{name} {options}");
    }
    // Queries are in the order of their first rows.
    let report = evaluated(at, "--predictions shuffled --output other");
    assert_eq!(report["systems"][0]["queries"], 3000);
    let mut expected: Vec<String> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for row in shuffled(&rows, 3) {
        if seen.insert(row.query.clone()) {
            expected.push(row.query);
        }
    }
    let table = table_of(&at.join("other"));
    let names = arrow::array::AsArray::as_string::<i32>(table.column(0));
    assert!(names.iter().map(Option::unwrap).eq(expected.iter().map(String::as_str)));
}

/// The rows of a metrics table as text, sorted.
fn sorted_rows(file: &Path) -> Vec<String> {
    use arrow::array::{Array, AsArray};
    let table = table_of(file);
    let rows = (0..table.num_rows()).map(|row| {
        let cells = table.columns().iter().map(|column| {
            if let Some(values) = column.as_primitive_opt::<arrow::datatypes::Float64Type>() {
                if values.is_null(row) {
                    return "null".to_owned();
                }
                return values.value(row).to_string();
            }
            match column.as_string_opt::<i32>() {
                Some(text) => text.value(row).to_owned(),
                None => column.as_primitive::<arrow::datatypes::Int32Type>().value(row).to_string(),
            }
        });
        cells.collect::<Vec<_>>().join(" ")
    });
    let mut rows: Vec<String> = rows.collect();
    rows.sort();
    rows
}

#[test]
fn other_column_types_and_segments_are_supported() {
    let room = room();
    let at = room.path();
    write_ours(at, "p.parquet", &rankings(5, 200));
    for order in ["ordered", "shuffled"] {
        if check(at, &format!("foreign p.parquet {order}.parquet {order}")).is_none() {
            return;
        }
        let by = format!("--predictions {order}.parquet --by market --output {order}-metrics");
        fs::write(at.join("report.json"), evaluated(at, &by).to_string()).unwrap();
        assert_eq!(check(at, &format!("segments {order}.parquet report.json")).unwrap(), "3");
    }
    assert_eq!(check(at, "same ordered-metrics shuffled-metrics").unwrap(), "200");
    check(at, "join_table p.parquet queries.parquet").unwrap();
    let joined = evaluated(at, "--predictions p.parquet --by market --join queries.parquet --on id");
    let direct = evaluated(at, "--predictions ordered.parquet --by market");
    assert_eq!(joined["systems"][0]["segments"], direct["systems"][0]["segments"]);
    let text = run(at, "evaluate --predictions ordered.parquet --by market").ok().stdout;
    assert!(text.contains("\nmarket ") && text.contains("\n(none) "), "{text}");
    let stderr = run(at, "evaluate --predictions ordered.parquet --by markt").failed().stderr;
    assert!(stderr.contains("no column markt") && stderr.contains("did you mean market?"), "{stderr}");
    let stderr = run(at, "evaluate --predictions ordered.parquet --by score").failed().stderr;
    assert!(stderr.contains("in the column of --by"), "{stderr}");
}

#[test]
fn several_systems_are_shown_side_by_side() {
    let room = room();
    let at = room.path();
    let rows = rankings(6, 50);
    let mut worse = rows.clone();
    worse.iter_mut().for_each(|row| row.score = -row.score);
    write_ours(at, "a.parquet", &rows);
    write_ours(at, "b.parquet", &worse);
    let alone = evaluated(at, "--predictions a.parquet");
    let both = evaluated(at, "--predictions good=a.parquet --predictions b.parquet --output m.parquet");
    assert_eq!(both["systems"][0]["means"], alone["systems"][0]["means"]);
    assert_eq!(both["systems"][0]["name"], "good");
    assert_eq!(both["systems"][1]["name"], "b.parquet");
    let mean = |system: usize| both["systems"][system]["means"]["ndcg@10"].as_f64().unwrap();
    assert!(mean(0) > mean(1));
    let table = table_of(&at.join("m.parquet"));
    assert_eq!((table.num_rows(), table.schema().fields().last().unwrap().name().as_str()), (100, "system"));
    let text = run(at, "evaluate --predictions good=a.parquet --predictions bad=b.parquet").ok().stdout;
    assert!(text.lines().any(|line| line.split_whitespace().eq(["metric", "good", "bad"])), "{text}");
    write_ours(at, "c.parquet", &rankings(6, 49));
    let ran = run(at, "evaluate --predictions a.parquet --predictions c.parquet");
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("c.parquet lacks 1 (q49)"), "{}", ran.stderr);
    let ran = run(at, "evaluate --predictions a.parquet --predictions ./a.parquet");
    assert!(
        ran.code == 2 && ran.stderr.contains("two rankings have the same name: a.parquet"),
        "{}",
        ran.stderr
    );
}

#[test]
fn trec_runs_round_trip() {
    let room = room();
    let at = room.path();
    let rows = rankings(7, 120);
    write_ours(at, "p.parquet", &rows);
    let direct = evaluated(at, "--predictions p.parquet --write-run p.run --tag mine --convention trec");
    let mut qrels = String::new();
    for row in &rows {
        qrels.push_str(&format!(
            "{}\t0\t{}\t{}\n",
            row.query,
            row.document.as_deref().unwrap(),
            row.label.unwrap()
        ));
    }
    fs::write(at.join("all.qrels"), &qrels).unwrap();
    let text = fs::read_to_string(at.join("p.run")).unwrap();
    assert_eq!(text.lines().count(), rows.len());
    assert!(text.lines().all(|line| line.split(' ').count() == 6 && line.ends_with(" mine")));
    let back = evaluated(at, "--run p.run --qrels all.qrels");
    assert_eq!(back["convention"], "trec");
    assert_eq!(back["systems"][0]["means"], direct["systems"][0]["means"]);
    let labelled = evaluated(at, "--predictions p.parquet --qrels all.qrels");
    assert_eq!(labelled["systems"][0]["metrics"], back["systems"][0]["metrics"]);
    // The order of lines does not matter.
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_by_key(|line| line.bytes().map(u64::from).sum::<u64>() % 97);
    fs::write(at.join("scrambled.run"), lines.join("\n")).unwrap();
    let scrambled = evaluated(at, "--run scrambled.run --qrels all.qrels --memory-limit 96MiB");
    assert_eq!(scrambled["systems"][0]["metrics"], back["systems"][0]["metrics"]);
    // Half of the ranked documents are judged, and some that were not ranked.
    if check(at, "qrels p.parquet half.qrels").is_none() {
        return;
    }
    let report = evaluated(at, "--run p.run --qrels half.qrels --metrics ndcg@5,map,p@5");
    fs::write(at.join("report.json"), report.to_string()).unwrap();
    assert_eq!(check(at, "trec p.run half.qrels report.json").unwrap(), "120");
}

#[test]
fn queries_in_only_one_file_are_counted() {
    let room = room();
    let at = room.path();
    fs::write(at.join("run"), "a Q0 d1 1 2.5 t\na Q0 d2 2 1.5 t\nb Q0 d1 1 1 t\n").unwrap();
    fs::write(at.join("qrels"), "a 0 d2 1\na 0 d9 0\nc 0 d1 2\n").unwrap();
    let report = evaluated(at, "--run run --qrels qrels --metrics mrr");
    let system = &report["systems"][0];
    assert_eq!((&system["queries"], &system["means"]["mrr"]), (&1.into(), &0.5.into()));
    assert_eq!(system["queries_without_judgments"], 1);
    assert_eq!(system["queries_without_documents"], 1);
    let complete = evaluated(at, "--run run --qrels qrels --metrics mrr --complete");
    assert_eq!(complete["systems"][0]["means"]["mrr"], 0.25);
    let printed = run(at, "evaluate --run run --qrels qrels --metrics ndcg,dcg,p@5 --complete").ok().stdout;
    assert!(printed.contains("\nc ") && !printed.contains("-0.0"), "{printed}");
    fs::write(at.join("other"), "x 0 d2 1\n").unwrap();
    let stderr = run(at, "evaluate --run run --qrels other").failed().stderr;
    assert!(stderr.contains("no query has judgments"), "{stderr}");
    let ran = run(at, "evaluate --run run");
    assert!(ran.code == 2 && ran.stderr.contains("a TREC run has no labels"), "{}", ran.stderr);
}

#[test]
fn scores_and_labels_are_joined_with_a_dataset() {
    let room = room();
    let at = room.path();
    fs::write(at.join("data.txt"), some_text(40, 12)).unwrap();
    run(at, "convert data.txt --output data --partition-rows 100").ok();
    let rows = rows_of(&at.join("data"));
    let score = |place: usize| ((place * 7919) % 10007) as f64 / 13.0;
    let ranked = |labelled: bool| -> Vec<Ranked> {
        let row = |(place, row): (usize, &DatasetRow)| Ranked {
            query: row.query.clone(),
            document: row.document.clone(),
            label: row.label.filter(|_| labelled),
            score: score(place),
        };
        rows.iter().enumerate().map(row).collect()
    };
    write_ours(at, "labelled", &ranked(true));
    write_ours(at, "unlabelled", &shuffled(&ranked(false), 1));
    let plain: String = (0..rows.len()).map(|place| format!("{}\n", score(place))).collect();
    let ranklib: String = rows
        .iter()
        .enumerate()
        .map(|(place, row)| format!("{}\t{place}\t{}\n", row.query, score(place)))
        .collect();
    fs::write(at.join("plain.txt"), &plain).unwrap();
    fs::write(at.join("ranklib.txt"), &ranklib).unwrap();
    let expected = &evaluated(at, "--predictions labelled")["systems"][0]["metrics"];
    for arguments in [
        "--predictions unlabelled --labels data",
        "--scores plain.txt --data data",
        "--scores ranklib.txt --data data",
        "--scores plain.txt --data data --threads 1",
    ] {
        assert_eq!(&evaluated(at, arguments)["systems"][0]["metrics"], expected, "{arguments}");
    }
    let by_feature = evaluated(at, "--scores plain.txt --data data --by query_id");
    assert_eq!(by_feature["systems"][0]["segments"].as_array().unwrap().len(), 40);
    let failed = |arguments: &str, part: &str| {
        let stderr = run(at, &format!("evaluate {arguments}")).failed().stderr;
        assert!(stderr.contains(part), "{arguments}: {stderr}");
    };
    fs::write(at.join("short.txt"), "1\n2\n").unwrap();
    fs::write(at.join("long.txt"), format!("{plain}7\n")).unwrap();
    fs::write(at.join("odd.txt"), plain.replacen("\n", "\nfour\n", 1)).unwrap();
    fs::write(at.join("empty.txt"), "").unwrap();
    failed("--scores short.txt --data data", "only 2 scores, but data has 480 rows");
    failed("--scores empty.txt --data data", "only 0 scores");
    failed("--scores long.txt --data data", "more than 480 scores, but data has 480 rows");
    failed("--scores odd.txt --data data", "odd.txt:2:1: invalid score \"four\"");
    failed("--scores absent.txt --data data", "absent.txt: cannot open");
    failed("--predictions unlabelled", "has no label");
    write_ours(at, "others", &rankings(1, 3));
    failed("--predictions others --labels data", "no query \"q0\"");
    let mut more = ranked(false);
    more[0].document = Some("unheard-of".to_owned());
    write_ours(at, "more", &more);
    failed("--predictions more --labels data", "no label for document \"unheard-of\"");
    more[0].document = None;
    write_ours(at, "nameless", &more);
    failed("--predictions nameless --labels data", "row 1 (query \"0\") has no doc_id");
}

#[test]
fn invalid_predictions_are_rejected_with_their_position() {
    let room = room();
    let at = room.path();
    let rows = rankings(8, 30);
    let failed = |arguments: &str, part: &str| {
        let ran = run(at, &format!("evaluate {arguments}")).failed();
        assert!(ran.stderr.contains(part), "{arguments}: {}", ran.stderr);
        assert!(ran.stderr.contains("help: ") && ran.stdout.is_empty(), "{}", ran.stderr);
    };
    let mut nan = rows.clone();
    nan[7].score = f64::NAN;
    write_ours(at, "nan", &nan);
    failed("--predictions nan", "nan: row 8 (query \"q");
    failed("--predictions nan", "the score is NaN");
    let mut twice = rows.clone();
    let last = twice.iter().rposition(|row| row.query == twice[0].query).unwrap();
    assert!(last > 0, "the first query has documents");
    twice[last].document = twice[0].document.clone();
    write_ours(at, "twice", &twice);
    failed("--predictions twice", &format!("twice, in rows 1 and {}", last + 1));
    let mut unlabelled = rows.clone();
    unlabelled[2].label = None;
    write_ours(at, "unlabelled", &unlabelled);
    failed("--predictions unlabelled", "row 3 (query \"q0\") has no label");
    unlabelled.iter_mut().for_each(|row| row.label = None);
    write_ours(at, "all-unlabelled", &unlabelled);
    failed("--predictions all-unlabelled", "row 1 (query \"q0\") has no label");
    write_ours(at, "empty", &[]);
    failed("--predictions empty", "empty: no rows");
    write_ours(at, "good", &rows);
    let mut bytes = fs::read(at.join("good")).unwrap();
    bytes[100] ^= 1;
    fs::write(at.join("damaged"), &bytes).unwrap();
    failed("--predictions damaged", "damaged: its content does not match its checksum");
    fs::write(at.join("text"), "1 2 3\n").unwrap();
    failed("--predictions text", "it is not a Parquet file");
    failed("--predictions absent", "absent: cannot open");
    let whole = batch(&rows);
    write_foreign(at, "scoreless", &whole.project(&[0, 1, 2]).unwrap());
    failed("--predictions scoreless", "no column score");
    let words = RecordBatch::try_from_iter([
        ("query_id", whole.column(0).clone()),
        ("label", whole.column(0).clone()),
        ("score", whole.column(3).clone()),
    ]);
    write_foreign(at, "words", &words.unwrap());
    failed("--predictions words", "column label is Utf8, not numeric");
    write_foreign(at, "foreign", &whole);
    let mut bytes = fs::read(at.join("foreign")).unwrap();
    let middle = bytes.len() / 2;
    bytes.truncate(middle);
    fs::write(at.join("cut"), &bytes).unwrap();
    failed("--predictions cut", "damaged: truncated file");
    failed("--predictions good --convention gain=0:1", "query \"q");
    // Misuse of options.
    for (arguments, part) in [
        ("--predictions good --metrics ndgc@10", "unknown metric"),
        ("--predictions good --metrics err,err", "metric err is given twice"),
        ("--predictions good --convention letor5", "unknown convention"),
        ("--predictions good --output good", "good is both an input and the output"),
        ("--predictions good --complete", "--complete requires judgments"),
        ("--scores good", "--data"),
        ("", "<[NAME=]FILE>..."),
    ] {
        let ran = run(at, &format!("evaluate {arguments}"));
        assert!(ran.code == 2 && ran.stderr.contains(part), "{arguments}: {}", ran.stderr);
    }
    // Existing files are untouched, and nothing is left behind.
    fs::write(at.join("notes"), "mine").unwrap();
    failed(
        "--predictions good --output notes",
        "refusing to overwrite: not created by planetree, or damaged",
    );
    write_ours(at, "other", &rows);
    failed("--predictions good --output other", "refusing to overwrite: this is predictions, not metrics");
    failed("--predictions nan --output metrics --write-run run", "the score is NaN");
    assert!(!at.join("metrics").exists() && !at.join("run").exists());
    assert!(names_in(at).iter().all(|name| !name.starts_with('.')), "{:?}", names_in(at));
}

#[test]
fn edge_cases_have_defined_values() {
    let room = room();
    let at = room.path();
    let row = |query: &str, label: f32, score: f64| Ranked {
        query: query.to_owned(),
        document: None,
        label: Some(label),
        score,
    };
    let rows = [
        row("one", 2.0, 0.0),
        row("zero", 0.0, 1.0),
        row("ties", 0.0, 1.0),
        row("ties", 1.0, 1.0),
        row("endless", 1.0, f64::INFINITY),
        row("endless", 0.0, f64::NEG_INFINITY),
    ];
    write_ours(at, "p", &rows);
    let report = evaluated(at, "--predictions p --metrics ndcg,map,mrr,p@2 --output m");
    assert_eq!(report["systems"][0]["empty_queries"], 1);
    use arrow::array::AsArray;
    let table = table_of(&at.join("m"));
    let column = |name: &str| {
        let column = table.column_by_name(name).unwrap();
        column.as_primitive::<arrow::datatypes::Float64Type>().values().to_vec()
    };
    let tied = 1.0 / 3.0_f64.log2();
    assert_eq!(column("ndcg"), [1.0, 0.0, tied, 1.0]);
    assert_eq!(column("mrr"), [1.0, 0.0, 0.5, 1.0]);
    assert_eq!(column("dcg"), [3.0, 0.0, tied, 1.0]);
    assert_eq!(column("idcg"), [3.0, 0.0, 1.0, 1.0]);
    let skipping = evaluated(at, "--predictions p --metrics ndcg --convention planetree,empty=skip");
    assert_eq!(skipping["systems"][0]["metrics"][0]["queries"], 3);
    let ran = run(at, "evaluate --predictions p --write-run run").failed();
    assert!(ran.stderr.contains("has no doc_id"), "{}", ran.stderr);
    assert!(!at.join("run").exists());
}

#[test]
fn every_convention_is_accepted_and_recorded() {
    let room = room();
    let at = room.path();
    write_ours(at, "p", &rankings(9, 20));
    for preset in Convention::presets() {
        let report = evaluated(at, &format!("--predictions p --convention {} --output m", preset.name));
        assert_eq!(report["convention"], preset.name);
        let described = run(at, "describe m --json").ok().stdout;
        let described: Value = serde_json::from_str(&described).unwrap();
        assert_eq!(described["convention"], preset.name);
    }
}

#[test]
fn predictions_in_a_bucket_are_evaluated_like_a_local_file() {
    let Some(server) = crate::support::object_stores::moto() else { return };
    let room = room();
    let at = room.path();
    write_ours(at, "p", &rankings(10, 300));
    crate::support::object_stores::put(server.port, &at.join("p"), "p");
    let local = run(at, "--quiet evaluate --predictions p --json --output m").ok();
    let arguments = "--quiet evaluate --predictions s3://bucket/p --json --output s3://bucket/m";
    let remote = run_with(at, arguments, &crate::support::object_stores::environment(server.port)).ok();
    assert_eq!(remote.stdout.replace("s3://bucket/p", "p"), local.stdout);
    let described =
        run_with(at, "describe s3://bucket/m", &crate::support::object_stores::environment(server.port))
            .ok()
            .stdout;
    assert_eq!(described.replace("s3://bucket/m", "m"), run(at, "describe m").ok().stdout);
}

#[test]
fn evaluation_agrees_with_the_training_log() {
    let room = room();
    let at = room.path();
    let examples = graded(3, 60, 20);
    dataset(at, "data", &examples, "");
    train(at, "--data data --valid data --model model --rounds rounds --set num_trees=5");
    run(at, "--quiet predict --model model --data data --output p --scores s.txt").ok();
    let log = rounds_of(&at.join("rounds"));
    let last = |metric: &str| *course(&log, "valid", metric).last().unwrap();
    for arguments in ["--predictions p", "--scores s.txt --data data"] {
        let report = evaluated(at, &format!("{arguments} --metrics ndcg@10,rmse"));
        let means = &report["systems"][0]["means"];
        assert_eq!(means["ndcg@10"].as_f64().unwrap().to_bits(), last("ndcg@10").to_bits());
        assert_close(means["rmse"].as_f64().unwrap(), last("rmse"), 1e-12, "rmse");
    }
}

#[test]
fn a_query_may_span_row_groups() {
    let room = room();
    let at = room.path();
    let mut draw = Stream::new(&[11]);
    let mut rows = Vec::new();
    for (query, documents) in [("a", 1), ("b", 2500), ("c", 1499), ("d", 1000), ("e", 3000), ("f", 7)] {
        for document in 0..documents {
            let label = (draw.uniform() * 5.0).floor();
            let (query, document) = (query.to_owned(), Some(format!("{query}{document}")));
            rows.push(Ranked {
                query,
                document,
                label: Some(label as f32),
                score: label + 3.0 * draw.normal(),
            });
        }
    }
    write_ours(at, "whole", &rows);
    write_foreign(at, "pieces", &batch(&rows));
    let metrics = "--metrics ndcg@10,ndcg,err,map,auc";
    for threads in [1, 4] {
        evaluated(at, &format!("--predictions whole {metrics} --threads {threads} --output one"));
        evaluated(at, &format!("--predictions pieces {metrics} --threads {threads} --output other"));
        assert!(table_of(&at.join("one")) == table_of(&at.join("other")), "{threads} threads");
        assert_eq!(table_of(&at.join("one")).num_rows(), 6);
    }
    let Some(_) = check(at, "truth_of pieces other") else { return };
}

#[test]
fn gains_that_are_too_large_are_rejected_with_query_row_and_label() {
    let room = room();
    let row = |query: &str, label: f32, score: f64| Ranked {
        query: query.to_owned(),
        document: Some(format!("{label}")),
        label: Some(label),
        score,
    };
    let rows = [
        row("a", 1.0, 2.0),
        row("a", 0.0, 1.0),
        row("b", 512.0, 3.0),
        row("b", 513.0, 2.0),
        row("b", 0.0, 1.0),
    ];
    write_ours(room.path(), "p", &rows);
    write_ours(room.path(), "q", &rows);
    let problem = "query \"b\", row 3: the gain of label 512 in gain=exp2 is larger than 1e30";
    for arguments in ["evaluate --predictions p", "evaluate --predictions p --metrics dcg@1", "compare p q"] {
        let ran = run(room.path(), arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{arguments}: {}", ran.stderr);
        assert!(ran.stderr.contains(problem) && ran.stderr.contains("label_gain=linear"), "{}", ran.stderr);
    }
    let linear =
        evaluated(room.path(), "--predictions p --metrics ndcg@1 --convention planetree,gain=linear");
    let mean = (1.0 + 512.0 / 513.0) / 2.0;
    assert_close(linear["systems"][0]["means"]["ndcg@1"].as_f64().unwrap(), mean, 1e-15, "linear gains");
    run(room.path(), "compare p q --convention planetree,gain=linear").ok();
    // Metrics that do not sum gains accept the labels.
    let binary = evaluated(room.path(), "--predictions p --metrics map,err,auc,rmse,inversions");
    assert_eq!(binary["systems"][0]["means"]["map"], 1.0);
}
