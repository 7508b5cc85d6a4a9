//! Every example of every page of the manual runs, and prints what the page shows.

use crate::support::Treatment::{File, NotRun, With};
use crate::support::*;
use std::path::Path;

const CONVERT: &str =
    "for part in train vali test; do planetree convert sample_data/$part.txt --output $part; done";
const NO_BUCKET: Treatment = NotRun("there is no such bucket");
const FORMULA: Treatment = NotRun("a formula");
const PART: Treatment = NotRun("a part of a pipeline");
const BUILD: Treatment = NotRun("it builds the program");

const SESSION: &str = "planetree train --data train --valid vali --model model.parquet --rounds rounds.parquet --set num_trees=100 && \
    planetree predict --model model.parquet --data test --output predictions.parquet";
/// Five datasets without common queries.
const PARTS: &str = "planetree cv --data train --folds 5 --set num_trees=1 --output split && \
    for part in 1 2 3 4 5; do cp -r split/parts/$part S$part; done";
/// The features and labels of MSLR.
const MSLR: &str = "planetree sample --shape mslr --rows 3000 --output mslr && \
    for part in train vali test; do planetree convert mslr/$part.txt --output $part; done";
const PIPELINE: Treatment = With("--dry-run", "the tests of pipelines run it");
const FEW_TREES: &str = "more trees take long in a test";

/// A test for each page.
macro_rules! pages {
    ($($(#[$attribute:meta])* $name:ident: $path:literal, [$($before:expr),* $(,)?], [$($exception:expr),* $(,)?];)*) => {
        const PAGES: &[Page] = &[$(Page { path: $path, before: &[$($before),*], exceptions: &[$($exception),*] }),*];

        $($(#[$attribute])* #[test]
        fn $name() {
            let room = room();
            let page = PAGES.iter().find(|page| page.path == $path).expect("it is in the list");
            let failures = run_page(room.path(), page);
            assert!(failures.is_empty(), "{}", failures.join("\n\n"));
        })*
    };
}

pages! {
    readme: "README.md", [
        "cp sample_data/train.txt train.txt",
        "printf '1 qid:1 1:1\\n0 qid:1 1:abc\\n' > broken.txt",
    ], [
        ("make demo", BUILD),
        ("make test", BUILD),
        ("duckdb", NotRun("another program; docs/models.md has such queries for planetree")),
        ("export AWS_", NO_BUCKET),
        ("planetree convert s3://", NO_BUCKET),
    ];
    blend: "docs/blend.md", [
        CONVERT,
        "mv vali valid",
        "for preset in mart lambdamart; do planetree train --preset $preset --data train --set num_trees=20 --model $preset.parquet; done",
        "planetree train --preset rf-point --data train --set num_trees=20 --set seed=1 --model forest.parquet",
        "planetree predict --model mart.parquet --data test --output mart-test.parquet",
        "planetree predict --model mart.parquet --data valid --output ours.parquet",
        "planetree predict --model forest.parquet --data valid --output theirs.csv",
    ], [("score = ", FORMULA)];
    building: "docs/building.md", [], [("cargo check", BUILD), ("cargo test", BUILD)];
    #[cfg(feature = "cluster")]
    cluster: "docs/cluster.md", [CONVERT], [
        ("planetree train --data train", With("--set num_trees=3", FEW_TREES)),
        ("cargo install", BUILD),
        ("node", NotRun("several machines")),
        ("planetree scheduler", NotRun("it serves until it is stopped; the tests of the cluster start one")),
        ("planetree executor", NotRun("it serves until it is stopped; the tests of the cluster start one")),
        ("planetree train ...", NotRun("several machines")),
        ("(umask", NotRun("a token for several machines")),
    ];
    compare: "docs/compare.md", [
        CONVERT,
        "planetree train --data train --model stump --set num_trees=5 --set max_depth=1",
        "planetree train --data train --model few --set num_trees=5",
        "planetree train --data train --model many --set num_trees=100",
        "for name in stump few many; do planetree predict --model $name --data test --output $name.parquet; done",
        "cp stump.parquet a.parquet; cp few.parquet b.parquet; cp many.parquet c.parquet",
        "cp few.parquet point.parquet; cp many.parquet list.parquet",
        "planetree evaluate few.parquet --output old.parquet && planetree evaluate many.parquet --output new.parquet",
        "planetree compare old.parquet new.parquet --output differences.parquet",
    ], [];
    convert: "docs/convert.md", [
        "printf 'qid,label,raw_a,b\\n1,1,3,4\\n1,,5,6\\n1,0,7,8\\n' > judgments.csv",
    ], [("SET VARIABLE", NotRun("a statement of DuckDB, on a bucket"))];
    cost: "docs/cost.md", [CONVERT, "cp sample_data/costs.csv . && mkdir FOLD && cp sample_data/*.txt FOLD"], [
        ("feature,cost,group", File("short.csv", "planetree train --data train --costs short.csv --model short --num-trees 2")),
        ("[costs]", File("short.toml", "planetree train --data train --costs short.toml --model short --num-trees 2")),
        ("planetree run", PIPELINE),
    ];
    cv: "docs/cv.md", [
        CONVERT, PARTS, "cp -r train judgments",
        "printf 'trials = 2\\nseed = 1\\n[search]\\nmax_depth = [2, 3]\\n' > search.toml",
    ], [
        ("planetree cv", With("--set num_trees=10", FEW_TREES)),
        ("trials = 30", File(
            "thirty.toml",
            "sed 's/trials = 30/trials = 1/' thirty.toml > one.toml && \
             planetree cv --data judgments --search one.toml --set num_trees=5 --output one",
        )),
    ];
    evaluate: "docs/evaluate.md", [
        CONVERT, SESSION,
        "cp predictions.parquet a.parquet; cp predictions.parquet b.parquet",
        "planetree sql -c \"SELECT DISTINCT query_id AS id, CASE WHEN query_id < '160' THEN 'us' ELSE 'de' END AS market \
         FROM 'predictions.parquet'\" -o queries.parquet",
    ], [];
    explain: "docs/explain.md", [], [("score = ", FORMULA), ("let explainer", NotRun("Rust, as in examples/"))];
    export: "docs/export.md", [
        CONVERT, "mv train data",
        "planetree train --data data --model model.parquet --set num_trees=15 --set missing=zero",
    ], [];
    forests: "docs/forests.md", [
        CONVERT,
        "mkdir -p MSLR-WEB10K/Fold1 && cp sample_data/*.txt MSLR-WEB10K/Fold1",
    ], [
        ("planetree train", With("--set num_trees=20", FEW_TREES)),
        ("planetree run", PIPELINE),
    ];
    linear: "docs/linear.md", [CONVERT], [
        ("score = ", FORMULA), ("sum over", FORMULA), ("svm_c *", FORMULA),
    ];
    metrics: "docs/metrics.md", [
        MSLR, "cp -r vali valid",
        "planetree train --data train --model model.parquet --set num_trees=3",
        "planetree predict --model model.parquet --data test --output predictions.parquet",
    ], [];
    missing: "docs/missing.md", [CONVERT], [("planetree run", PIPELINE)];
    models: "docs/models.md", [
        MSLR,
        "planetree train --preset rf --data train --model classes --set num_trees=3 --set target=ordinal",
        "planetree predict --model classes --data test --parts --output classes.parquet",
        "rm -r train vali test",
        CONVERT, SESSION,
        "cp rounds.parquet a.parquet; cp rounds.parquet b.parquet",
        "planetree train --preset rf-list --data train --model list --set num_trees=3 --strength strength.parquet",
    ], [("score = ", FORMULA), ("value of a group", FORMULA)];
    nets: "docs/nets.md", [CONVERT], [
        ("hidden unit", FORMULA),
        ("planetree train", With("--set num_trees=2", FEW_TREES)),
    ];
    outputs: "docs/outputs.md", [], [];
    papers: "docs/papers.md", [
        "mkdir MQ2008 && for part in S1 S2 S3 S4; do cp sample_data/train.txt MQ2008/$part.txt; done",
    ], [("planetree run", PIPELINE), ("make papers", NotRun("hours of training"))];
    performance: "docs/performance.md", [], [];
    pipelines: "docs/pipelines.md", [
        CONVERT,
        "printf '1 qid:1 1:1\\n0 qid:1 1:abc\\n' > train.txt",
        "printf '[step.train]\\nkind = \"convert\"\\ninput = \"train.txt\"\\n' > broken.toml",
    ], [("[parameters]", PART), ("[paper]", PART)];
    python: "docs/python.md", [], [("make wheel", BUILD), ("pip install", BUILD)];
    quality: "docs/quality.md", [
        CONVERT, PARTS,
        "planetree cv --data S1 S2 S3 S4 --preset lambdamart-paper --set num_trees=5 --output gradient",
    ], [("planetree cv", With("--set num_trees=5", FEW_TREES))];
    rankers: "docs/rankers.md", [CONVERT], [("1/2 ln(", FORMULA)];
    reliability: "docs/reliability.md", [], [("kind  ", NotRun("faults of half an hour: make torture"))];
    report: "docs/report.md", [CONVERT], [("planetree report RUN", NotRun("the syntax of the command"))];
    scale: "docs/scale.md", [], [("T = ", FORMULA)];
    sql: "docs/sql.md", [
        CONVERT, SESSION,
        "mkdir -p fold1 datasets logs runs/2026-11-17",
        "cp -r test datasets; cp predictions.parquet fold1; cp predictions.parquet runs/2026-11-17",
        "for name in old new logs/1 logs/2; do cp predictions.parquet $name.parquet; done",
        "printf 'query_id,clicks\\n140,3\\n' > clicks.csv",
    ], [("SELECT * FROM 's3://", NO_BUCKET)];
    train: "docs/train.md", [
        CONVERT, "printf 'qid,label,raw_a,b\\n1,1,3,4\\n1,,5,6\\n1,0,7,8\\n2,1,4,4\\n2,0,5,1\\n' > judgments.csv",
    ], [
        ("planetree train --preset rf ", With("--set num_trees=20", FEW_TREES)),
        ("planetree train --preset lambdamart --data judgments.csv", With("--set min_data_in_leaf=1", "five rows")),
    ];
    transfer: "docs/transfer.md", [CONVERT], [("planetree run", PIPELINE)];
}

#[test]
fn every_page_is_in_the_list() {
    let docs = names_in(&Path::new(ROOT).join("docs"));
    let mut expected: Vec<String> =
        docs.iter().filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")).collect();
    expected.push("README.md".to_owned());
    expected.sort();
    let mut listed: Vec<&str> = PAGES.iter().map(|page| page.path).collect();
    listed.sort_unstable();
    assert_eq!(listed, expected);
}
