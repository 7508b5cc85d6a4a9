//! Outputs of all commands: the extension determines the format, and files that planetree did not write are
//! never replaced.

use crate::support::*;
use std::fs;
use std::path::Path;

/// Creates datasets, a model, predictions and a run.
fn prepared(temporary: &Path) {
    fs::write(temporary.join("rows.txt"), some_text(12, 8)).unwrap();
    run(temporary, "convert rows.txt --output data").ok();
    run(temporary, "train --data data --model model.parquet --set num_trees=5 --set min_data_in_leaf=2").ok();
    run(temporary, "predict --model model.parquet --data data --output one.parquet").ok();
    run(temporary, "predict --model model.parquet --data data --output two.parquet").ok();
    run(temporary, "export model.parquet --format lightgbm --output theirs").ok();
}

/// All options of all commands that name an output file, with a matching extension.
const OUTPUTS: [(&str, &str); 20] = [
    ("predict --model model.parquet --data data --output FILE", "parquet"),
    ("predict --model model.parquet --data data --output FILE", "csv"),
    ("predict --model model.parquet --data data --output FILE", "ndjson.gz"),
    ("predict --model model.parquet --data data --scores FILE", "txt"),
    ("predict --model model.parquet --data data --output scored --stats FILE", "json"),
    ("train --data data --set num_trees=2 --model FILE", "parquet"),
    ("train --data data --set num_trees=2 --model fresh --rounds FILE", "csv"),
    ("train --data data --set num_trees=2 --model fresh --checkpoint FILE", "parquet"),
    ("train --data data --set num_trees=2 --model fresh --stats FILE", "json"),
    ("train --data data --preset rf-point --set num_trees=2 --model fresh --oob FILE", "tsv"),
    ("evaluate --predictions one.parquet --output FILE", "json"),
    ("evaluate --predictions one.parquet --write-run FILE", "txt"),
    ("compare one.parquet two.parquet --output FILE", "csv"),
    ("export model.parquet --format lightgbm --output FILE", "txt"),
    ("export model.parquet --format xgboost --output FILE", "json"),
    ("export model.parquet --format json --output FILE", "json"),
    ("import theirs --output FILE", "parquet"),
    ("report . --output FILE", "html"),
    ("report . --output fresh.html --disputed FILE", "csv"),
    ("sql -c SELECT/**/1/**/AS/**/a --output FILE", "csv"),
];

/// Names and contents of files that planetree did not write.
fn foreign_files(extension: &str) -> Vec<(String, &'static str)> {
    let foreign = [
        ("table", "query_id,doc_id,label,score,rank,comment\n1,a,0,0.5,1,mine\n"),
        ("notes", "Meeting at 10\n- buy milk\n"),
        ("object", "{\"name\": \"mine\", \"total_s\": 3}\n"),
        ("numbers", "1.50\n2.5\n"),
        ("page", "<!doctype html><title>mine</title>\n"),
        ("model", "tree\nversion=v4\nnum_class=1\n\nparameters:\n[boosting: gbdt]\nend of parameters\n"),
        ("run", "q1 Q0 d1 1 0.5 theirs\n"),
        ("script", "#!/bin/sh\nexit 0\n"),
    ];
    let mut files: Vec<_> =
        foreign.iter().map(|(name, text)| (format!("my-{name}.{extension}"), *text)).collect();
    files.extend([
        (".bashrc".to_owned(), "alias ll='ls -l'\n"),
        (format!(".hidden.{extension}"), "secret\n"),
        (".git/hooks/pre-commit".to_owned(), "#!/bin/sh\n"),
        (format!(".git/hooks/table.{extension}"), "mine\n"),
    ]);
    files
}

#[test]
fn foreign_files_survive_every_output_of_every_command() {
    let temporary = room();
    let temporary = temporary.path();
    prepared(temporary);
    fs::create_dir_all(temporary.join(".git/hooks")).unwrap();
    for (command, extension) in OUTPUTS {
        for (name, text) in foreign_files(extension) {
            fs::write(temporary.join(&name), text).unwrap();
            let ran = run(temporary, &command.replace("FILE", &name)).failed();
            assert!(ran.stderr.contains("refusing to"), "{command} {name}: {}", ran.stderr);
            assert_eq!(fs::read_to_string(temporary.join(&name)).unwrap(), text, "{command} {name}");
            fs::remove_file(temporary.join(&name)).unwrap();
        }
        // The target of a link is not replaced either.
        fs::write(temporary.join("target"), "mine").unwrap();
        let link = format!("link.{extension}");
        std::os::unix::fs::symlink("target", temporary.join(&link)).unwrap();
        run(temporary, &command.replace("FILE", &link)).failed();
        assert_eq!(fs::read_to_string(temporary.join("target")).unwrap(), "mine", "{command}");
        assert!(temporary.join(&link).is_symlink(), "{command}");
        fs::remove_file(temporary.join(&link)).unwrap();
        fs::remove_file(temporary.join("target")).unwrap();
    }
    assert_eq!(names_in(&temporary.join(".git/hooks")), Vec::<String>::new());
}

#[test]
fn foreign_directories_survive() {
    let temporary = room();
    let temporary = temporary.path();
    prepared(temporary);
    fs::create_dir_all(temporary.join("mine")).unwrap();
    let texts = [("train.txt", "1 qid:1 1:0.5 #docid = GX1\n"), ("planetree.1", "notes"), ("cv.json", "{}")];
    for (name, text) in texts {
        fs::write(temporary.join("mine").join(name), text).unwrap();
    }
    run(temporary, "sample --shape letor --rows 50 --seed 1 --output mine").failed();
    run(temporary, "man --output mine").failed();
    run(temporary, "cv --data data --folds 3 --set num_trees=2 --output mine").failed();
    run(temporary, "convert rows.txt --output mine --overwrite").failed();
    for (name, text) in texts {
        assert_eq!(fs::read_to_string(temporary.join("mine").join(name)).unwrap(), text);
    }
    assert_eq!(names_in(&temporary.join("mine")), ["cv.json", "planetree.1", "train.txt"]);
    run(temporary, "convert rows.txt --output .hidden").failed();
    run(temporary, "convert rows.txt --output .cache/data").failed();
    run(temporary, "sample --shape letor --rows 50 --seed 1 --output .cache").failed();
    assert!(!temporary.join(".hidden").exists() && !temporary.join(".cache").exists());
    // Working in a hidden directory, or naming one from outside, is permitted.
    fs::create_dir_all(temporary.join(".work")).unwrap();
    run(&temporary.join(".work"), "convert ../rows.txt --output data").ok();
    let elsewhere = temporary.join(".work/data2");
    run(
        Path::new("/"),
        &format!("convert {}/rows.txt --output {}", temporary.display(), elsewhere.display()),
    )
    .ok();
}

#[test]
fn outputs_of_planetree_are_replaced_by_the_same_command() {
    let temporary = room();
    let temporary = temporary.path();
    prepared(temporary);
    for (command, extension) in OUTPUTS.iter().filter(|(command, _)| !command.starts_with("sql")) {
        let name = format!("again.{extension}");
        let line = command.replace("FILE", &name);
        run(temporary, &line).ok();
        if command.contains("--checkpoint") {
            continue; // removed once the model is complete
        }
        let first = fs::read(temporary.join(&name)).unwrap();
        run(temporary, &line).ok();
        let second = fs::read(temporary.join(&name)).unwrap();
        assert!(first == second || command.contains("--stats") || command.contains("--rounds"), "{line}");
        fs::remove_file(temporary.join(&name)).unwrap();
    }
    for _ in 0..2 {
        run(temporary, "sample --shape letor --rows 50 --seed 1 --output sample").ok();
        run(temporary, "man --output pages").ok();
        run(temporary, "sql -c SELECT/**/1/**/AS/**/a -o result.parquet").ok();
        run(temporary, "sql -c SELECT/**/1/**/AS/**/a -o result.csv --overwrite").ok();
        run(temporary, "evaluate --predictions one.parquet --write-run mine.run --tag mine").ok();
    }
    let ran = run(temporary, "sql -c SELECT/**/1/**/AS/**/a -o result.csv").failed();
    assert!(ran.stderr.contains("--overwrite"), "{}", ran.stderr);
    // Outputs of planetree are not replaced by other kinds of outputs, even with --overwrite.
    run(temporary, "sql -c SELECT/**/1/**/AS/**/a -o model.parquet --overwrite").failed();
    run(temporary, "export model.parquet --format json -o one.parquet").failed();
}

#[test]
fn copy_writes_only_where_permitted() {
    let temporary = room();
    let temporary = temporary.path();
    fs::create_dir_all(temporary.join("out/.git/hooks")).unwrap();
    let copy = |target: &str, options: &str| {
        let mut command = command(temporary, &format!("sql {options}"));
        Ran::of(command.args(["-c", &format!("COPY (SELECT 1 AS a) TO '{target}'")]).output().unwrap())
    };
    let ran = copy("out/x.csv", "").failed();
    assert!(
        ran.stderr.contains("SQL may not write here") && ran.stderr.contains("--allow-write"),
        "{}",
        ran.stderr
    );
    copy("out/x.csv", "--allow-path out").failed();
    copy("x.csv", "--allow-write out").failed();
    copy("out/../x.csv", "--allow-write out").failed();
    for hidden in ["out/.x.csv", "out/.git/hooks/pre.csv"] {
        let ran = copy(hidden, "--allow-write out --overwrite").failed();
        assert!(ran.stderr.contains("hidden"), "{}", ran.stderr);
    }
    copy("out/x.csv", "--allow-write out").ok();
    copy("out/x.csv.gz", "--allow-write out").ok();
    copy("new/deep/x.parquet", "--allow-write new").ok();
    copy("new/deep/x.parquet", "--allow-write new").ok();
    let ran = copy("out/x.csv", "--allow-write out").failed();
    assert!(ran.stderr.contains("refusing to overwrite"), "{}", ran.stderr);
    copy("out/x.csv", "--allow-write out --overwrite").ok();
    assert_eq!(fs::read_to_string(temporary.join("out/x.csv")).unwrap(), "a\n1\n");
    assert_eq!(names_in(temporary), ["new", "out"]);
}

#[test]
fn an_unsupported_extension_is_invalid_usage() {
    let temporary = room();
    let temporary = temporary.path();
    prepared(temporary);
    let before = names_in(temporary);
    for (command, extension) in [
        ("predict --model model.parquet --data data --output FILE", "xlsx"),
        ("predict --model model.parquet --data data --output FILE", "parquet.gz"),
        ("predict --model model.parquet --data data --scores FILE", "parquet"),
        ("predict --model model.parquet --data data --scores s.txt --stats FILE", "csv"),
        ("train --data data --model FILE", "csv"),
        ("train --data data --model m --rounds FILE", "pdf"),
        ("train --data data --model m --stats FILE", "txt"),
        ("evaluate --predictions one.parquet --output FILE", "txt"),
        ("evaluate --predictions one.parquet --write-run FILE", "json"),
        ("compare one.parquet two.parquet --output FILE", "html"),
        ("report . --output FILE", "pdf"),
        ("report . --output FILE", "html.gz"),
        ("sql -c x --output FILE", "xlsx"),
        ("sql -c x --format json --output FILE", "csv"),
        ("export model.parquet --format lightgbm --output FILE", "parquet"),
        ("export model.parquet --format xgboost --output FILE", "csv"),
    ] {
        let name = format!("x.{extension}");
        let ran = run(temporary, &command.replace("FILE", &name));
        assert_eq!(ran.code, 2, "{command} {name}: {}", ran.stderr);
        assert!(ran.stderr.contains(&name) && ran.stderr.contains("help: "), "{}", ran.stderr);
    }
    let ran = run(temporary, "predict --model model.parquet --data data --output x.xlsx");
    assert!(
        ran.stderr.contains(
            "x.xlsx: cannot write predictions as .xlsx\n  help: use .parquet (or no extension), .csv, .tsv, .json or .ndjson; append .gz or .zst to compress text\n"
        ),
        "{}",
        ran.stderr
    );
    assert_eq!(names_in(temporary), before);
}

#[test]
fn predictions_as_text_are_evaluated_like_parquet() {
    let temporary = room();
    let temporary = temporary.path();
    // Documents with various ids, and some without.
    let csv = "query_id,doc_id,label,f1,f2\n007,1,2,0.25,1\n007,01,0,0.5,2\n007,\"a,\"\"b\"\"\",1,0.125,\n8,,0,1,3\n8,x,1,-1,3\n8,null,0,7,7\n";
    fs::write(temporary.join("rows.csv"), csv).unwrap();
    run(temporary, "convert rows.csv --output data").ok();
    run(
        temporary,
        "train --data data --model m --set num_trees=3 --set min_data_in_leaf=1 --set learning_rate=0.1",
    )
    .ok();
    run(temporary, "predict --model m --data data --output p.parquet").ok();
    let evaluated = |file: &str| {
        let line =
            format!("-q evaluate --predictions x={file} --metrics ndcg,err,map --output metrics.parquet");
        let stdout = run(temporary, &line).ok().stdout.replace(file, "FILE");
        (stdout, fs::read(temporary.join("metrics.parquet")).unwrap())
    };
    let expected = evaluated("p.parquet");
    for extension in ["csv", "tsv", "json", "ndjson", "jsonl", "csv.gz", "csv.zst", "json.gz", "ndjson.zst"] {
        let file = format!("p.{extension}");
        run(temporary, &format!("predict --model m --data data --output {file}")).ok();
        assert!(evaluated(&file) == expected, "{file}: {}", expected.0);
    }
    let table = fs::read_to_string(temporary.join("p.csv")).unwrap();
    assert!(table.starts_with("query_id,doc_id,label,score,rank\n007,1,2.0,"), "{table}");
    for file in ["p.csv", "p.json.gz"] {
        let ran = run(temporary, &format!("compare p.parquet {file} --metric ndcg --json")).ok();
        assert!(ran.stderr.contains("both systems have the same value for every query"), "{}", ran.stderr);
    }
    // Scattered rows of a query are combined, and a truncated file is detected.
    let mut lines: Vec<&str> = table.lines().collect();
    lines.swap(1, 5);
    fs::write(temporary.join("apart.csv"), lines.join("\n")).unwrap();
    run(temporary, "evaluate --predictions apart.csv").ok();
    let json = fs::read(temporary.join("p.json")).unwrap();
    fs::write(temporary.join("half.json"), &json[..json.len() / 2]).unwrap();
    run(temporary, "evaluate --predictions half.json").failed();
    fs::write(temporary.join("half.csv"), &table[..table.len() - 8]).unwrap();
    let ran = run(temporary, "evaluate --predictions half.csv").failed();
    assert!(ran.stderr.contains("half.csv:7:1: 4 values, but the header has 5"), "{}", ran.stderr);
}

#[test]
fn text_has_the_same_numbers_as_parquet() {
    let temporary = room();
    let temporary = temporary.path();
    prepared(temporary);
    for extension in ["csv", "tsv", "json", "ndjson"] {
        run(temporary, &format!("predict --model model.parquet --data data --output p.{extension}")).ok();
        let query = format!(
            "SELECT count(*) AS n FROM 'p.{extension}' AS t JOIN 'one.parquet' AS o \
             ON CAST(t.query_id AS VARCHAR) = o.query_id AND t.score = o.score AND t.label = o.label AND t.rank = o.rank"
        );
        let output = command(temporary, "sql --format csv").args(["-c", &query]).output().unwrap();
        let rows: u64 = Ran::of(output).ok().stdout.lines().nth(1).unwrap().parse().unwrap();
        assert!(rows >= 96, "{extension}: {rows}");
    }
}

/// A file that only looks compressed, numbers that are labels, and a hook given by its absolute path.
#[test]
fn files_that_resemble_outputs_survive() {
    let temporary = room();
    prepared(temporary.path());
    let junk: &[u8] = &[0x1f, 0x8b, 1, 2, 3, 4];
    for (name, bytes) in [("junk", junk), ("labels.txt", b"1\n0\n2\n".as_slice())] {
        std::fs::write(temporary.path().join(name), bytes).unwrap();
        let ran =
            run(temporary.path(), &format!("predict --model model.parquet --data data --scores {name}"))
                .failed();
        assert!(ran.stderr.contains("refusing to overwrite"), "{}", ran.stderr);
        assert_eq!(std::fs::read(temporary.path().join(name)).unwrap(), bytes);
    }
    let hooks = temporary.path().join(".git/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    std::fs::write(hooks.join("pre-commit"), "#!/bin/sh\n").unwrap();
    let hook = hooks.join("pre-commit");
    let ran =
        run(temporary.path(), &format!("sql -c select+1 -o {} --overwrite --format csv", hook.display()));
    assert!(ran.code != 0, "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(&hook).unwrap(), "#!/bin/sh\n");
    // Scores written by planetree are replaced.
    run(temporary.path(), "predict --model model.parquet --data data --scores s.txt").ok();
    run(temporary.path(), "predict --model model.parquet --data data --scores s.txt").ok();
}

#[test]
fn a_dash_is_not_the_name_of_an_output() {
    let room = room();
    prepared(room.path());
    for arguments in [
        "predict --model model.parquet --data data --output -",
        "train --data data --set num_trees=2 --model -",
        "convert rows.txt --output -",
        "export model.parquet --format lightgbm --output -",
    ] {
        assert_refused(arguments, &run(room.path(), arguments), 2, &["it cannot be the standard output (-)"]);
        assert!(!room.path().join("-").exists(), "{arguments}");
    }
    let named = run(room.path(), "compare old=one.parquet new=two.parquet").ok().stdout;
    assert!(named.contains("  old: one.parquet\n") && named.contains("  new: two.parquet\n"), "{named}");
    let unnamed = run(room.path(), "compare one.parquet two.parquet").ok().stdout;
    assert!(unnamed.contains("  one.parquet\n") && !unnamed.contains(": one.parquet"), "{unnamed}");
}
