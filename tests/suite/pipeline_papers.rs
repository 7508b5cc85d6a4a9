//! The shipped pipelines of papers, each run on the sample data, and what they compute.

use crate::support::pipelines::manifest;
use crate::support::*;
use planetree_run::pipeline::RunStatus;
use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(crate::support::ROOT)
}

/// Words that the reports of some pipelines contain.
const IN_REPORTS: [(&str, &[&str]); 12] = [
    ("thesis_gbrt_rf", &["Figure 2.1", "GBRT, rate 0.1", "0.7746", "The forest is better than boosting"]),
    (
        "thesis_classes",
        &["Table 3.1", "F(c) = 2^c", "OLS on validation", "Table 3.2", ">−1.2503<", "T_1, ours"],
    ),
    ("thesis_summary", &["Table 4.2", "I-GBRT (C)", "SVMrank"]),
    ("thesis_cost", &["Table 6.1", "SGBRT, lambda 1, exit 10 %", "prec@5 against cost"]),
    ("thesis_transfer", &["Table 5.1", "Q+P+C"]),
    ("pgbrt_bins", &["b = 20", "relative distance", "relative to the best", ">1.0000<"]),
    (
        "forest_comparison",
        &["Table XV", "RF-list is better than RF-point", "0.2313", "Table XVII", "test part", "0.0071"],
    ),
    ("forest_min_rows", &["Figure 8: RF-list minus RF-point", "n_min = 100"]),
    ("forest_strength", &["Correlation among trees", "RF-list-S5"]),
    ("forest_trees", &["RF-point has more leaves per tree"]),
    ("challenge", &["M10: LambdaRank net for NDCG", "The blend is better than every model"]),
    ("mart_example", &["2.4706", "1.4444", "3.6250", "A tree of five leaves fits all points"]),
];

/// Runs some pipelines by name, in a directory without any data.
fn run_papers(first: &str, end: &str) {
    let room = room();
    let files = names_in(&root().join("pipelines/papers"));
    let names = files.iter().filter_map(|name| name.strip_suffix(".toml"));
    for name in names.filter(|name| (first..end).contains(name)) {
        let arguments = format!("run {name} --jobs 2");
        run(room.path(), &arguments).ok();
        let directory = room.path().join("runs").join(name);
        let record = manifest(&directory);
        assert_eq!(record.status, RunStatus::Complete, "{name}");
        let paper = record.paper.as_ref().unwrap_or_else(|| panic!("{name} has no [paper]"));
        assert!(!paper.tables.is_empty() && !paper.findings.is_empty(), "{name}");
        let page = fs::read_to_string(directory.join("report.html")).unwrap();
        assert!(page.contains("As in the paper"), "{name}");
        for (_, words) in IN_REPORTS.iter().filter(|(of, _)| *of == name) {
            for word in *words {
                assert!(page.contains(word), "{name}: {word} is not in its report");
            }
        }
        // At least one row of a table and one finding are of systems of the run.
        assert!(
            page.contains("as stated") || page.contains("pairs differ") || page.contains("relative distance"),
            "{name}"
        );
        let plan = run(room.path(), &format!("{arguments} --dry-run")).ok().stdout;
        assert!(!plan.contains("run: "), "{name}: a second run would repeat steps\n{plan}");
    }
}

#[test]
fn pipelines_of_papers_run_on_sample_data() {
    run_papers("", "g");
}

#[test]
fn pipelines_of_later_papers_run_on_sample_data() {
    run_papers("g", "~");
}

/// With `data`, a pipeline takes the parts of the folder and its usual parameters.
#[test]
fn a_paper_on_other_data_has_its_own_parameters() {
    let room = room();
    let parts = room.path().join("parts");
    fs::create_dir(&parts).unwrap();
    for (number, name) in ["train", "vali", "test", "vali"].into_iter().enumerate() {
        let text = fs::read_to_string(root().join("sample_data").join(format!("{name}.txt"))).unwrap();
        let text = text.replace("qid:", &format!("qid:{number}-"));
        fs::write(parts.join(format!("S{}.txt", number + 1)), text).unwrap();
    }
    let plan = run(room.path(), "run thesis_gbrt_rf --set data=parts --dry-run").ok().stdout;
    for word in ["part-S1", "part-S4", "gbrt-0.02", "gbrt-0.2", "report"] {
        assert!(plan.contains(word), "{word} is not in\n{plan}");
    }
    run(
        room.path(),
        "run thesis_gbrt_rf --set data=parts --set trees=5 --set forest_trees=3 --set rates=0.1",
    )
    .ok();
    let directory = room.path().join("runs/thesis_gbrt_rf");
    let record = manifest(&directory);
    assert_eq!(
        (record.parameters["parts"].as_str(), record.parameters["trees"].as_str()),
        ("S1,S2,S3,S4", "5")
    );
    // Each metric chooses its own round, models are not kept, and each test query is tested once.
    let folds = run(room.path(), "describe runs/thesis_gbrt_rf/gbrt-0.1/folds.parquet").ok().stdout;
    assert!(folds.contains("rmse") && folds.contains("ndcg@10"), "{folds}");
    let fold = directory.join("gbrt-0.1/folds/1");
    assert!(fold.join("predictions-err.parquet").exists() && !fold.join("model.parquet").exists());
}

/// Pipelines that do not cross-validate take the first fold, of parts and of folders of folds.
#[test]
fn papers_with_one_fold_take_that_of_letor() {
    let room = room();
    let copy = |from: &str, to: &str| {
        let to = room.path().join(to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(root().join("sample_data").join(from), to).unwrap();
    };
    // A copy of a part is not read, too.
    copy("train.txt", "parts/S1.txt.bak");
    for (part, from) in ["train", "vali", "test", "vali", "test"].into_iter().enumerate() {
        copy(&format!("{from}.txt"), &format!("parts/S{}.txt", part + 1));
    }
    for (fold, name) in [1, 2].into_iter().flat_map(|fold| ["train", "vali", "test"].map(|name| (fold, name)))
    {
        copy(&format!("{name}.txt"), &format!("folds/Fold{fold}/{name}.txt"));
    }
    let with_valid = ["challenge", "thesis_cost"];
    let others = ["forest_learning_curve", "forest_strength", "forest_trees"];
    for name in with_valid.into_iter().chain(others).chain(["thesis_transfer"]) {
        let source = if name == "thesis_transfer" { "--set source=parts/S1.txt" } else { "" };
        let plan = |data: &str| {
            run(room.path(), &format!("run {name} --set data={data} {source} --dry-run")).ok().stdout
        };
        let of_parts = plan("parts");
        let files = "  train = parts/S1.txt,parts/S2.txt,parts/S3.txt\n";
        assert!(
            of_parts.contains(files) && of_parts.contains("  test = parts/S5.txt\n"),
            "{name}\n{of_parts}"
        );
        assert_eq!(
            of_parts.contains("  valid = parts/S4.txt\n"),
            with_valid.contains(&name),
            "{name}\n{of_parts}"
        );
        let of_folds = plan("folds");
        for file in ["  train = folds/Fold1/train.txt\n", "  test = folds/Fold1/test.txt\n"] {
            assert!(of_folds.contains(file), "{name}\n{of_folds}");
        }
    }
    run(room.path(), "run forest_trees --set data=parts --set trees=2").ok();
    let trained = run(room.path(), "describe runs/forest_trees/train").ok().stdout;
    assert!(trained.contains("3,000"), "1,800 rows of S1, and 600 of S2 and of S3\n{trained}");
}

/// The correlation among the trees of a forest, as Breiman (2001, section 11) defines it: pair by pair, from the scores of
/// each tree alone.
fn correlation_by_pairs(room: &Path, settings: &str, trees: usize) -> f64 {
    let mut residuals: Vec<Vec<f64>> = Vec::new();
    let mut sums: Vec<f64> = Vec::new();
    for count in 1..=trees {
        // A forest begins with the trees of smaller ones, and its score is the mean of theirs.
        let model = format!("forest-{count}");
        train(
            room,
            &format!("--data run/train {settings} --set num_trees={count} --set seed=1 --model {model}"),
        );
        run(room, &format!("--quiet predict --model {model} --data run/test --output scores-{count}")).ok();
        let rows = predictions_of(&room.join(format!("scores-{count}")));
        sums.resize(rows.len(), 0.0);
        let mut of_tree = Vec::new();
        for (row, sum) in rows.iter().zip(&mut sums) {
            let total = row.score * count as f64;
            of_tree.push(f64::from(row.label) - (total - *sum));
            *sum = total;
        }
        residuals.push(of_tree);
    }
    let product = |one: usize, other: usize| {
        let pairs = residuals[one].iter().zip(&residuals[other]);
        pairs.map(|(one, other)| one * other).sum::<f64>() / residuals[one].len() as f64
    };
    let pairs: Vec<f64> = (0..trees)
        .flat_map(|one| (0..trees).filter(move |other| *other != one).map(move |other| (one, other)))
        .map(|(one, other)| product(one, other))
        .collect();
    let deviation = (0..trees).map(|tree| product(tree, tree).sqrt()).sum::<f64>() / trees as f64;
    pairs.iter().sum::<f64>() / pairs.len() as f64 / (deviation * deviation)
}

#[test]
fn the_correlation_among_trees_is_that_of_all_pairs() {
    let room = room();
    std::os::unix::fs::symlink(root().join("sample_data"), room.path().join("sample_data")).unwrap();
    run(room.path(), "run forest_strength --set correlated_trees=5 --output run").ok();
    let written = fs::read_to_string(room.path().join("run/correlation.csv")).unwrap();
    let mut lines = written.lines();
    assert_eq!(lines.next(), Some("system,tree_rmse,forest_rmse,correlation"));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 4, "{written}");
    for (preset, fraction) in [("rf-point", "0.63"), ("rf-list", "0.05")] {
        let row = rows.iter().find(|row| row[0] == format!("{preset}-{fraction}"));
        let found: f64 = row.unwrap_or_else(|| panic!("{preset} is not in {written}"))[3].parse().unwrap();
        let settings = format!("--preset {preset} --set query_fraction={fraction} --set metric=rmse");
        let expected = correlation_by_pairs(room.path(), &settings, 5);
        assert!((found - expected).abs() < 1e-9, "{preset}: {found}, pair by pair {expected}");
        assert!(expected > 0.0 && expected < 1.0, "{expected}");
    }
}

#[test]
fn the_page_of_papers_has_what_the_reports_say() {
    let Some(python) = python() else { return };
    let room = room();
    run(room.path(), "run mart_example --output papers/mart_example").ok();
    fs::write(room.path().join("papers/times.tsv"), "mart_example\t90.0\nmart_example\t30.0\n").unwrap();
    let marked = |name: &str, content: &str| {
        format!(
            "<!-- {name}: written by pipelines/papers/write-page -->\n{content}\n<!-- end of {name} -->\n"
        )
    };
    let page = room.path().join("papers.md");
    let old = "| Boosting is better than the forest | auc | `thesis_cost`, MQ2008 | holds, within chance | 1 \\| 1 |";
    let partly = "| Boosting is better than the forest | auc | `thesis_cost`, OHSUMED | holds for the systems of this run | 1 |";
    // Of a finding that the pipeline does not state, and of a pipeline that is gone.
    let stale = "| Costs matter | auc | `thesis_cost`, MQ2008 | holds, within chance | 1 of 1 |";
    let gone =
        "| Boosting is better than the forest | auc | `no_such`, MQ2008 | holds, within chance | 1 of 1 |";
    let inventory =
        "| example | 17 points | `mart_example` | ? | ours |\n| costs | 6.1 | `thesis_cost` | ? | |\n";
    let text = marked("findings", &[old, partly, stale, gone].join("\n"))
        + inventory
        + &marked("figures", "### `thesis_cost`, MQ2008\n\nTable 6.1")
        + &marked("times", "");
    fs::write(&page, text).unwrap();
    let write = || {
        let script = root().join("pipelines/papers/write-page");
        let arguments = [script.as_path(), Path::new("papers"), Path::new("papers.md")];
        let ran =
            std::process::Command::new(&python).args(arguments).current_dir(room.path()).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        fs::read_to_string(&page).unwrap()
    };
    let written = write();
    for part in [
        "| Every tree reduces the error | rmse | `mart_example`, 17 points | holds, not tested | 1 of 1 as stated",
        "### Findings that hold within noise, or for some of their systems\n\n| finding | metric | run | verdict | evidence |\n",
        &format!("{old}\n{partly}\n"),
        "| example | 17 points | `mart_example` | 17 points | ours |",
        "| costs | 6.1 | `thesis_cost` | MQ2008 | |",
        "### `mart_example`, 17 points\n\nThe worked example\n\n| system | value, ours | value, lecture |",
        "| F0 | 2.4706 | 2.4710 |",
        "### `thesis_cost`, MQ2008\n\nTable 6.1\n",
        "| `mart_example`, 17 points | 2.0 |",
    ] {
        assert!(written.contains(part), "{part} is not in\n{written}");
    }
    assert!(!written.contains("Costs matter") && !written.contains("no_such"), "{written}");
    assert_eq!(write(), written, "the same runs give the same page");
}

#[test]
fn other_papers_run_if_one_fails() {
    let room = room();
    let at = room.path();
    fs::create_dir_all(at.join("data/MQ2008")).unwrap();
    let program = at.join("program");
    fs::write(
        &program,
        "#!/bin/sh\necho \"$*\" >> \"$0.calls\"\ncase \"$2\" in *bins*|*all_rankers*) exit 3;; esac\n",
    )
    .unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let arguments = [root().join("pipelines/papers/run-all"), program, at.join("data"), at.join("papers")];
    let ran = std::process::Command::new("sh").args(&arguments).args(["--threads", "1"]).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1), "{said}");
    assert!(said.contains("error: these runs failed: pgbrt_bins-MQ2008 all_rankers-MQ2008\n"), "{said}");
    assert!(said.contains("skipped: challenge on MSLR-sample"), "{said}");
    let calls = fs::read_to_string(at.join("program.calls")).unwrap();
    let times = fs::read_to_string(at.join("papers/times.tsv")).unwrap();
    assert_eq!(calls.lines().count(), times.lines().count(), "{calls}");
    assert!(calls.lines().all(|call| call.ends_with("--threads 1")), "{calls}");
    // Every pipeline runs on some dataset, if all are there.
    let script = fs::read_to_string(root().join("pipelines/papers/run-all")).unwrap();
    for name in
        names_in(&root().join("pipelines/papers")).iter().filter_map(|name| name.strip_suffix(".toml"))
    {
        assert!(script.contains(name), "{name} is not in run-all");
    }
}

#[test]
fn the_times_of_papers_include_runs_that_failed_or_were_stopped() {
    let room = room();
    let at = room.path();
    let program = at.join("program");
    // Not INT: a shell cannot trap what is ignored when it starts, as INT is in background jobs of scripts.
    let text = "#!/bin/sh\nif [ $MODE = stop ]; then kill -TERM $PPID; fi\n[ $MODE = work ]\n";
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let arguments = [root().join("pipelines/papers/run-all"), program, at.join("none"), at.join("papers")];
    for (run, (mode, code)) in [("fail", 1), ("stop", 130), ("work", 0)].into_iter().enumerate() {
        let ran = std::process::Command::new("sh").args(&arguments).env("MODE", mode).output().unwrap();
        assert_eq!(ran.status.code(), Some(code), "{mode}: {}", String::from_utf8_lossy(&ran.stderr));
        let times = fs::read_to_string(at.join("papers/times.tsv")).unwrap();
        assert_eq!(times.lines().count(), run + 1, "{mode}: {times}");
        assert!(times.lines().all(|line| line.starts_with("mart_example\t")), "{times}");
        assert_eq!(names_in(&at.join("papers")), ["times.tsv"]);
    }
}
