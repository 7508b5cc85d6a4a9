//! Reading every supported input format.

use crate::support::*;
use std::fs;
use std::io::Write;
use std::path::Path;

fn write(directory: &Path, name: &str, text: impl AsRef<[u8]>) {
    fs::write(directory.join(name), text).unwrap();
}

#[test]
fn compression_is_detected_by_content_not_by_name() {
    let temporary = room();
    let text = some_text(20, 10);
    write(temporary.path(), "plain.txt", &text);
    run(temporary.path(), "convert plain.txt --output plain").ok();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip2.write_all(text.as_bytes()).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(text.as_bytes()).unwrap();
    // Two members, as produced by `cat a.gz b.gz`.
    let (head, tail) = text.split_at(text.find("qid:9").unwrap() - 2);
    let mut twice = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    twice.write_all(head.as_bytes()).unwrap();
    let mut members = twice.finish().unwrap();
    let mut second = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    second.write_all(tail.as_bytes()).unwrap();
    members.extend(second.finish().unwrap());
    let compressed = [
        ("gzip", gzip.finish().unwrap()),
        ("bzip2", bzip2.finish().unwrap()),
        ("xz", xz.finish().unwrap()),
        ("zstd", zstd::encode_all(text.as_bytes(), 1).unwrap()),
        ("members", members),
    ];
    for (name, bytes) in compressed {
        write(temporary.path(), "misleading.txt", bytes);
        run(temporary.path(), &format!("convert misleading.txt --output {name}")).ok();
        assert_same_files(&temporary.path().join(name), &temporary.path().join("plain"));
    }
}

#[test]
fn several_inputs_directories_and_patterns_are_read_in_order() {
    let temporary = room();
    let parts = temporary.path().join("parts");
    fs::create_dir(&parts).unwrap();
    write(&parts, "b.txt", "1 qid:2 1:2\n");
    write(&parts, "a.txt", "0 qid:1 1:1\n");
    write(&parts, "c.txt", "2 qid:2 1:3\n0 qid:3 1:4\n"); // query 2 continues from b.txt
    write(&parts, "README.txt", "not data");
    write(&parts, ".hidden", "not data");
    for (number, arguments) in
        ["parts", "parts/*.t?t", "parts/a.txt parts/b.txt parts/c.txt", "parts/a.txt parts/[bc].txt"]
            .iter()
            .enumerate()
    {
        if arguments.contains("*") {
            fs::remove_file(parts.join("README.txt")).unwrap();
        }
        run(temporary.path(), &format!("convert {arguments} --output out{number}")).ok();
        let rows = rows_of(&temporary.path().join(format!("out{number}")));
        let values: Vec<_> = rows.iter().map(|row| (row.query.as_str(), row.features[0].unwrap())).collect();
        assert_eq!(values, [("1", 1.0), ("2", 2.0), ("2", 3.0), ("3", 4.0)], "{arguments}");
    }
}

/// Returns messages without the notes that precede an error, such as those on side files.
fn without_notes(stderr: &str) -> String {
    stderr.split_inclusive('\n').filter(|line| !line.starts_with("note: ")).collect()
}

#[test]
fn lightgbm_side_files_give_queries_weights_and_positions() {
    let temporary = room();
    write(temporary.path(), "train.txt", "0 1:1\n1 1:2\n2 2:3\n");
    write(temporary.path(), "train.txt.query", "1\n0\n2\n");
    write(temporary.path(), "train.txt.weight", "0.5\n1\n2\n");
    write(temporary.path(), "train.txt.position", "0\n1\n0\n");
    run(temporary.path(), "convert train.txt --output out").ok();
    let rows = rows_of(&temporary.path().join("out"));
    assert_eq!(rows.iter().map(|row| row.query.as_str()).collect::<Vec<_>>(), ["1", "2", "2"]);
    let described = run(temporary.path(), "describe out --json").ok().stdout;
    assert!(described.contains("\"queries\":2"), "{described}");
    let manifest = fs::read_to_string(temporary.path().join("out/_manifest.json")).unwrap();
    assert!(manifest.contains("\"weight\": true") && manifest.contains("\"position\": true"));
    for (query, message) in [
        ("1\n1\n", "error: train.txt.query: ends before row 3 of train.txt\n"),
        ("1\n3\n", "error: train.txt.query: covers more than the 3 rows of train.txt\n"),
        ("1\n2\n5\n", "error: train.txt.query: covers more than the 3 rows of train.txt\n"),
        ("1\nx\n", "error: train.txt.query:2:1: found \"x\", expected a number\n"),
        (
            "1.5\n2\n",
            "error: train.txt.query:1:1: found 1.5, expected a row count: a whole number, at least 0\n",
        ),
    ] {
        write(temporary.path(), "train.txt.query", query);
        let stderr = without_notes(&run(temporary.path(), "convert train.txt --output bad").failed().stderr);
        assert!(stderr.starts_with(message), "{query:?}: {stderr}");
    }
}

#[test]
fn columns_of_tables_are_found_by_name() {
    let temporary = room();
    write(
        temporary.path(),
        "t.csv",
        "url,GROUP,LABEL,size,colour,weight\n\"a,b\",q1,2,1.5,red,1\n\"say \"\"x\"\"\nand y\",q1,,,blue,2\n,q2,0,7,red,3\n",
    );
    let ran = run(temporary.path(), "convert t.csv --output out --doc-column url").ok();
    assert!(
        ran.stderr.contains(
            "note: colour treated as categorical: values are coded 0, 1, 2, ... in order of appearance"
        ),
        "{}",
        ran.stderr
    );
    let rows = rows_of(&temporary.path().join("out"));
    let documents: Vec<Option<&str>> = rows.iter().map(|row| row.document.as_deref()).collect();
    assert_eq!(documents, [Some("a,b"), Some("say \"x\"\nand y"), None]);
    assert_eq!(rows.iter().map(|row| row.label).collect::<Vec<_>>(), [Some(2.0), None, Some(0.0)]);
    assert_eq!(rows[1].features, [None, Some(1.0)]);
    // A test set keeps the codes of its training set and adds new ones.
    write(temporary.path(), "test.csv", "GROUP,LABEL,size,colour\nq9,1,1,green\nq9,1,1,blue\n");
    run(temporary.path(), "convert test.csv --output test --categories-from out").ok();
    assert_eq!(
        rows_of(&temporary.path().join("test")).iter().map(|row| row.features[1]).collect::<Vec<_>>(),
        [Some(2.0), Some(1.0)]
    );
    // The same with semicolons, without a header, and with skipped columns.
    write(temporary.path(), "n.csv", "q1;5;x;1\nq1;6;y;2\n");
    run(temporary.path(), "convert n.csv --output n --format csv --no-header --query-column 0 --label-column 3 --ignore-columns 2").ok();
    assert_eq!(rows_of(&temporary.path().join("n"))[1].features, [Some(6.0)]);
}

#[test]
fn faults_of_tables_report_line_and_column() {
    let temporary = room();
    for (text, message) in [
        ("qid,label,a\n1,0,1\n1,0,x\n", "error: t.csv:3:5: found \"x\", expected a decimal number\n"),
        (
            "qid,label,a\n1,0\n",
            "error: t.csv:2:1: found 2 fields, expected as many fields as in the header\n",
        ),
        ("qid,label,a\n1,zero,1\n", "error: t.csv:2:3: found \"zero\", expected a number as the label\n"),
        ("qid,label,a\n1,-3,1\n", "error: t.csv:2:3: found \"-3\", expected a label of 0 or more"),
        ("qid,label,a\n,0,1\n", "error: t.csv:2:1: found the end of the line, expected a query id"),
        (
            "qid,label,a\n1,0,\"open\n1,0,2\n",
            "error: t.csv:2:1: found the end of the file, expected a closing quote\n",
        ),
        ("qid,label,a,a\n1,0,1,2\n", "error: t.csv: the feature name \"a\" is used twice\n"),
    ] {
        write(temporary.path(), "t.csv", text);
        let stderr = run(temporary.path(), "convert t.csv --output out").failed().stderr;
        assert!(stderr.contains(message), "{text:?}: {stderr}");
    }
}

#[test]
fn catboost_descriptions_are_found_next_to_the_table() {
    let temporary = room();
    write(temporary.path(), "train.tsv", "7\tq1\t0.5\thttp://x\t1\n8\tq1\t1.5\thttp://y\t2\n");
    write(temporary.path(), "train.tsv.cd", "0\tAuxiliary\n1\tGroupId\n2\tTarget\n3\tDocId\n4\tNum\tsize\n");
    run(temporary.path(), "convert train.tsv --output out").ok();
    let rows = rows_of(&temporary.path().join("out"));
    assert_eq!(
        (rows[1].query.as_str(), rows[1].document.as_deref(), rows[1].label),
        ("q1", Some("http://y"), Some(1.5))
    );
    assert_eq!(rows[1].features, [Some(2.0)]);
}

#[test]
fn datasets_and_parquet_files_are_valid_inputs() {
    let temporary = room();
    write(temporary.path(), "in.txt", some_text(30, 7));
    run(temporary.path(), "convert in.txt --output one --partition-rows 50").ok();
    assert!(names_in(&temporary.path().join("one")).len() > 3);
    run(temporary.path(), "convert one --output two").ok();
    assert_eq!(rows_of(&temporary.path().join("two")), rows_of(&temporary.path().join("one")));
    let part =
        names_in(&temporary.path().join("two")).into_iter().find(|name| name.ends_with(".parquet")).unwrap();
    let bytes = fs::read(temporary.path().join("two").join(part)).unwrap();
    write(temporary.path(), "lone.parquet", &bytes);
    run(temporary.path(), "convert lone.parquet --output lone").ok();
    run_stdin(temporary.path(), "convert - --output three", &bytes).ok();
    assert_same_files(&temporary.path().join("three"), &temporary.path().join("lone"));
    write(temporary.path(), "bad.parquet", &bytes[..bytes.len() - 20]);
    let stderr = run(temporary.path(), "convert bad.parquet --output bad").failed().stderr;
    assert!(stderr.starts_with("error: bad.parquet: invalid Parquet file: "), "{stderr}");
}

#[test]
fn a_names_file_gives_feature_names() {
    let temporary = room();
    write(temporary.path(), "in.txt", "1 qid:1 1:5 3:6\n");
    write(temporary.path(), "names", "1 covered terms\n2 length\n3 bm25\n4 url\n");
    run(temporary.path(), "convert in.txt --output out --names names").ok();
    let manifest = fs::read_to_string(temporary.path().join("out/_manifest.json")).unwrap();
    assert!(manifest.contains("\"covered terms\""));
    assert_eq!(rows_of(&temporary.path().join("out"))[0].features, [Some(5.0), None, Some(6.0), None]);
    write(temporary.path(), "names", "a\nb\n");
    let stderr = run(temporary.path(), "convert in.txt --output bad --names names").failed().stderr;
    assert!(
        stderr.contains("in.txt:1:13: found \"3:6\", expected an index of at most --max-features"),
        "{stderr}"
    );
}

#[test]
fn describe_summarises_a_dataset() {
    let temporary = room();
    write(
        temporary.path(),
        "in.txt",
        "0 qid:1 1:1 2:5 #d\n0 qid:1 1:1 2:5 #d\n2 qid:2 1:1 2:0.5\n-1 qid:2 1:1\n1 qid:3 1:1 4:2\n",
    );
    run(temporary.path(), "convert in.txt --output out").ok();
    let text = run(temporary.path(), "describe out").ok().stdout;
    for line in [
        "rows                  5",
        "queries               3",
        "documents per query   min 1  p10 1  p25 1  median 2  p75 2  p90 2  max 2",
        "        none              1  20.00 %  ########",
        "f1      constant    0.00 %            1            1            1          1",
        "f2      real       40.00 %       0.5000            5       3.5000          2",
        "f3      empty     100.00 %            -            -            -          0",
        "warning: 1 of 3 queries have no relevant document (no label above 0)",
        "warning: 1 documents share their id with another document of the same query",
        "warning: 1 rows equal another row of the same query in every feature",
        "warning: 1 feature has no values: f3",
        "warning: 1 feature has the same value in all rows: f1",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line:?} in\n{text}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&run(temporary.path(), "describe out --json").ok().stdout).unwrap();
    assert_eq!((json["rows"].as_u64(), json["unlabelled"].as_u64()), (Some(5), Some(1)));
    assert_eq!(json["features"][1]["mean"], 3.5);
}

#[test]
fn the_shipped_sample_is_reproducible() {
    let temporary = room();
    let shipped = Path::new(crate::support::ROOT).join("sample_data");
    let readme = fs::read_to_string(shipped.join("README.md")).unwrap();
    let command = readme.lines().find_map(|line| line.trim().strip_prefix("planetree ")).unwrap();
    run(temporary.path(), &command.replace("--output sample_data", "--output made")).ok();
    for part in ["train.txt", "vali.txt", "test.txt"] {
        let (made, shipped) = (
            fs::read(temporary.path().join("made").join(part)).unwrap(),
            fs::read(shipped.join(part)).unwrap(),
        );
        assert!(made == shipped, "{part} differs");
    }
}

#[test]
fn inputs_after_the_first_must_have_the_same_columns() {
    let temporary = room();
    write(temporary.path(), "numbers.csv", "qid,label,a\n1,0,5\n1,1,7\n");
    write(temporary.path(), "words.csv", "qid,label,a\n2,0,red\n2,1,blue\n");
    write(temporary.path(), "weighted.csv", "qid,label,a,weight\n3,0,1,2\n");
    write(temporary.path(), "other.csv", "qid,label,b\n4,0,1\n");
    write(temporary.path(), "empty.csv", "");
    write(temporary.path(), "letor.txt", "1 qid:9 1:1\n");
    for (inputs, message) in [
        (
            "numbers.csv words.csv",
            "error: words.csv: column a: categorical here and numeric in numbers.csv, or vice versa\n  help: pass --categorical a to treat both as categorical",
        ),
        ("words.csv numbers.csv", "error: numbers.csv: column a: categorical here and numeric in words.csv"),
        ("numbers.csv weighted.csv", "error: weighted.csv: does not have the same columns as numbers.csv\n"),
        ("numbers.csv other.csv", "error: other.csv: does not have the same columns as numbers.csv\n"),
        ("numbers.csv letor.txt", "error: letor.txt: does not have the same format as numbers.csv\n"),
    ] {
        let stderr = run(temporary.path(), &format!("convert {inputs} --output bad")).failed().stderr;
        assert!(stderr.contains(message), "{inputs}: {stderr}");
    }
    run(temporary.path(), "convert numbers.csv words.csv --categorical a --output both").ok();
    let codes: Vec<_> =
        rows_of(&temporary.path().join("both")).iter().map(|row| row.features[0].unwrap()).collect();
    assert_eq!(codes, [0.0, 1.0, 2.0, 3.0]);
    run(temporary.path(), "convert numbers.csv empty.csv --output fine").ok();
    // Weights for one text file, but not for another.
    write(temporary.path(), "a.txt", "1 qid:1 1:1\n");
    write(temporary.path(), "b.txt", "1 qid:2 1:1\n");
    write(temporary.path(), "b.txt.weight", "2\n");
    let stderr = run(temporary.path(), "convert a.txt b.txt --output bad").failed().stderr;
    assert!(
        stderr.starts_with("error: b.txt: does not have the same side files (.weight, .position) as a.txt\n"),
        "{stderr}"
    );
    // Numbered and named queries could have the same ids.
    write(temporary.path(), "c.txt", "1 1:1\n");
    write(temporary.path(), "c.txt.query", "1\n");
    let stderr = run(temporary.path(), "convert a.txt c.txt --output bad").failed().stderr;
    assert!(
        stderr.starts_with(
            "error: c.txt: this input has query sizes in a .query file, but another one has query ids\n"
        ),
        "{stderr}"
    );
}

#[test]
fn side_files_are_used_only_when_they_match() {
    let temporary = room();
    // Lines with query ids do not need a .query file.
    write(temporary.path(), "named.txt", "1 qid:x 1:1\n0 qid:x 1:2\n");
    write(temporary.path(), "named.txt.query", "2\n");
    run(temporary.path(), "convert named.txt --output named").ok();
    assert_eq!(rows_of(&temporary.path().join("named"))[0].query, "x");
    // A skipped line would shift all following ones.
    write(temporary.path(), "w.txt", "1 qid:x 1:1\nrubbish\n0 qid:x 1:2\n");
    write(temporary.path(), "w.txt.weight", "1\n2\n3\n");
    let ran = run(temporary.path(), "convert w.txt --lenient --output w").failed();
    assert!(ran.stderr.starts_with("note: w.txt.weight gives the row weights"), "{}", ran.stderr);
    let stderr = without_notes(&ran.stderr);
    assert!(
        stderr.starts_with("error: w.txt: lines were skipped, so the side files no longer match the rows\n"),
        "{stderr}"
    );
    write(temporary.path(), "p.txt", "1 qid:x 1:1\n");
    write(temporary.path(), "p.txt.position", "1.5\n");
    let stderr = without_notes(&run(temporary.path(), "convert p.txt --output p").failed().stderr);
    assert!(
        stderr.starts_with("error: p.txt.position:1:1: found 1.5, expected a whole number as the position\n"),
        "{stderr}"
    );
    // The name of a side file may include or omit the compression suffix.
    for name in ["z.txt.query", "z.txt.gz.query"] {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"1 1:1\n0 1:2\n").unwrap();
        write(temporary.path(), "z.txt.gz", gzip.finish().unwrap());
        write(temporary.path(), name, "2\n");
        run(temporary.path(), "convert z.txt.gz --output z --overwrite").ok();
        fs::remove_file(temporary.path().join(name)).unwrap();
    }
}

#[test]
fn line_numbers_are_right_with_crlf_blank_lines_and_quotes() {
    let temporary = room();
    for (text, place) in [
        ("qid,label,a\r\n1,0,1\r\n1,0,x\r\n", "t.csv:3:5: "),
        ("qid,label,a\n\n\n1,0,1\n\n1,0,x\n", "t.csv:6:5: "),
        ("qid,label,a\n\"1\n\n2\",0,1\n1,0,x\n", "t.csv:5:5: "),
        ("qid,label,a\n5\" disk,0,1\n1,0,x\n", "t.csv:3:5: "),
    ] {
        write(temporary.path(), "t.csv", text);
        let stderr = run(temporary.path(), "convert t.csv --output out").failed().stderr;
        assert!(stderr.contains(place), "{text:?}: {stderr}");
    }
    // A quote within a field is text, and does not swallow the rest of the file.
    write(temporary.path(), "q.tsv", "qid\tlabel\tdoc_id\ta\n1\t0\t5\" disk\t2\n1\t1\t\"two\nlines\"\t3\n");
    run(temporary.path(), "convert q.tsv --output q").ok();
    let documents: Vec<_> =
        rows_of(&temporary.path().join("q")).iter().map(|row| row.document.clone().unwrap()).collect();
    assert_eq!(documents, ["5\" disk", "two\nlines"]);
}

#[test]
fn category_codes_are_kept_consistent() {
    let temporary = room();
    write(temporary.path(), "train.csv", "qid,label,c,flag\n1,0,17,true\n1,1,5,false\n");
    run(temporary.path(), "convert train.csv --categorical c --output train").ok();
    assert_eq!(rows_of(&temporary.path().join("train"))[0].features, [Some(0.0), Some(1.0)]);
    // Numbers are categories in a column that is categorical elsewhere.
    write(temporary.path(), "test.csv", "qid,label,c,flag\n2,0,5,false\n2,1,17,true\n");
    run(temporary.path(), "convert test.csv --categories-from train --output test").ok();
    assert_eq!(rows_of(&temporary.path().join("test"))[0].features, [Some(1.0), Some(0.0)]);
    // A dataset made from a dataset keeps the list of categories; two different lists cannot be combined.
    run(temporary.path(), "convert train --output again").ok();
    let manifest = fs::read_to_string(temporary.path().join("again/_manifest.json")).unwrap();
    assert!(manifest.contains("\"17\",\n        \"5\""), "{manifest}");
    write(temporary.path(), "other.csv", "qid,label,c,flag\n3,0,x,true\n");
    run(temporary.path(), "convert other.csv --output other").ok();
    let stderr = run(temporary.path(), "convert train other --output bad").failed().stderr;
    assert!(stderr.contains("category codes differ from those of train/"), "{stderr}");
    // A column of ids is not categorical.
    let rows: String = (0..70_000).map(|row| format!("q,0,u{row}\n")).collect();
    write(temporary.path(), "ids.csv", format!("qid,label,url\n{rows}"));
    let stderr = run(temporary.path(), "convert ids.csv --output ids").failed().stderr;
    assert!(stderr.contains("error: column url: more than 65536 categories, too many for a feature\n  help: pass --ignore-columns url, or --doc-column url"), "{stderr}");
}

#[test]
fn a_skipped_row_adds_neither_categories_nor_counts() {
    let temporary = room();
    write(temporary.path(), "t.csv", "qid,label,c,a\n1,0,red,1\n1,bad,green,x\n1,1,blue,2\n");
    run(temporary.path(), "convert t.csv --lenient --output out").ok();
    let manifest = fs::read_to_string(temporary.path().join("out/_manifest.json")).unwrap();
    assert!(!manifest.contains("green"), "{manifest}");
    assert!(manifest.contains("label-malformed") && !manifest.contains("value-malformed"), "{manifest}");
}

#[test]
fn positions_and_weights_are_kept_exactly_or_rejected() {
    let temporary = room();
    write(temporary.path(), "t.csv", "qid,label,a,position,weight\n1,0,1,,\n1,1,2,16777217,0.5\n");
    run(temporary.path(), "convert t.csv --output out").ok();
    run(temporary.path(), "convert out --output again").ok();
    for dataset in ["out", "again"] {
        use arrow::array::AsArray;
        use arrow::datatypes::{Float32Type, Int32Type};
        let location = planetree::storage::Location::Local(temporary.path().join(dataset));
        let reader = planetree::dataset::DatasetReader::open(&location).unwrap();
        let batch = reader.open_group(reader.groups()[0]).unwrap().read_all().unwrap();
        let positions = batch.column_by_name("position").unwrap().as_primitive::<Int32Type>();
        assert_eq!(positions.iter().collect::<Vec<_>>(), [None, Some(16_777_217)]);
        let weights = batch.column_by_name("weight").unwrap().as_primitive::<Float32Type>();
        assert_eq!(weights.iter().collect::<Vec<_>>(), [None, Some(0.5)]);
    }
    for (cells, message) in [
        ("1.5,1", "found \"1.5\", expected a whole number as the position"),
        ("3000000000,1", "expected a whole number as the position"),
        ("1,inf", "found \"inf\", expected a finite number as the weight"),
    ] {
        write(temporary.path(), "t.csv", format!("qid,label,a,position,weight\n1,0,1,{cells}\n"));
        let stderr = run(temporary.path(), "convert t.csv --output bad").failed().stderr;
        assert!(stderr.contains(message), "{stderr}");
    }
}

/// The values of one feature of a dataset.
fn values(dataset: &Path, feature: usize) -> Vec<Option<f32>> {
    rows_of(dataset).iter().map(|row| row.features[feature]).collect()
}

#[test]
fn numbers_with_decimal_commas_are_not_categories() {
    let temporary = room();
    write(temporary.path(), "point.csv", "qid,label,a,b\n1,0.5,0.934,x\n1,1,-12,y\n2,0,,x\n");
    run(temporary.path(), "convert point.csv --output point").ok();
    write(temporary.path(), "semicolon.csv", "qid;label;a;b\n1;0,5;0,934;x\n1;1;-12;y\n2;0;;x\n");
    let ran = run(temporary.path(), "convert semicolon.csv --output semicolon").ok();
    let note = "note: numbers in the label, a have decimal commas: 0,5 is read as 0.5\n";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
    assert!(ran.stderr.contains("note: b treated as categorical"), "{}", ran.stderr);
    write(temporary.path(), "tab.tsv", "qid\tlabel\ta\tb\n1\t0,5\t0,934\tx\n1\t1\t-12\ty\n2\t0\t\tx\n");
    run(temporary.path(), "convert tab.tsv --output tab --decimal-comma").ok();
    write(temporary.path(), "quoted.csv", "qid,label,a,b\n1,\"0,5\",\"0,934\",x\n1,1,-12,y\n2,0,,x\n");
    run(temporary.path(), "convert quoted.csv --output quoted --decimal-comma --delimiter ,").ok();
    for same in ["semicolon", "tab", "quoted"] {
        assert_eq!(rows_of(&temporary.path().join(same)), rows_of(&temporary.path().join("point")), "{same}");
    }
    for (name, text, problem) in [
        (
            "t.tsv",
            "qid\tlabel\ta\n1\t0\t0,5\n",
            "t.tsv: column a: ambiguous commas in numbers such as \"0,5\": decimal marks or thousands separators?\n  help: pass --decimal-comma if",
        ),
        (
            "t.csv",
            "qid,label,a\n1,0,\"1,234\"\n1,0,999\n",
            "t.csv:2:5: found \"1,234\", expected a decimal number without a comma\n  help: pass --decimal-comma if",
        ),
        (
            "t.csv",
            "qid;label;a;b\n1;0;0,5;0.5\n",
            "t.csv:2:9: found \"0.5\", expected a number with a decimal comma, as in the rest of the file",
        ),
        (
            "t.csv",
            "qid;label;a\n1;0;1.234,5\n",
            "t.csv: column a: ambiguous commas in numbers such as \"1.234,5\"",
        ),
        (
            "t.csv",
            "qid;label;a\n1;0;0,5\n1;0;1.234,5\n",
            "t.csv: column a: ambiguous commas in numbers such as \"0,5\": decimal marks or thousands separators?",
        ),
    ] {
        write(temporary.path(), name, text);
        let ran = run(temporary.path(), &format!("convert {name} --output none")).failed();
        assert!(ran.stderr.contains(&format!("error: {problem}")), "{text:?}: {}", ran.stderr);
    }
    // An explicit --categorical takes precedence.
    write(temporary.path(), "t.csv", "qid;label;a\n1;0;1,5\n1;1;2,5\n");
    let ran = run(temporary.path(), "convert t.csv --output words --categorical a").ok();
    assert!(ran.stderr.contains("note: a treated as categorical"), "{}", ran.stderr);
    assert_eq!(values(&temporary.path().join("words"), 0), [Some(0.0), Some(1.0)]);
}

#[test]
fn one_invalid_cell_does_not_make_a_column_categorical() {
    let temporary = room();
    let text = "qid;label;a\n1;0;0,5\n1;1;0,7\n2;0;unknown\n2;1;0,9\n";
    std::fs::write(temporary.path().join("t.csv"), text).unwrap();
    let stderr = run(temporary.path(), "convert t.csv --output t").failed().stderr;
    assert!(stderr.contains("--decimal-comma") && stderr.contains("--categorical a"), "{stderr}");
    let stderr = run(temporary.path(), "convert t.csv --output t --decimal-comma").failed().stderr;
    assert!(stderr.contains("t.csv:4:5") && stderr.contains("unknown"), "{stderr}");
}

#[test]
fn a_last_line_without_a_newline_is_read() {
    let temporary = room();
    for (number, end) in ["", "\n"].iter().enumerate() {
        write(temporary.path(), "mixed.csv", format!("qid,label,a\n1,0,x\n1,1,0.934{end}"));
        let ran = run(temporary.path(), "convert mixed.csv --output mixed").failed();
        assert!(
            ran.stderr.contains("error: mixed.csv:2:5: found \"x\", expected a decimal number\n"),
            "{}",
            ran.stderr
        );
        write(temporary.path(), "one.csv", format!("qid,label,a\n1,1,0.934{end}"));
        run(temporary.path(), &format!("convert one.csv --output one{number}")).ok();
        assert_eq!(values(&temporary.path().join(format!("one{number}")), 0), [Some(0.934)]);
    }
}

#[test]
fn the_index_of_a_data_frame_is_not_a_feature() {
    use arrow::array::{ArrayRef, Float32Array, Int64Array, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;
    use parquet::file::metadata::KeyValue;
    use parquet::file::properties::WriterProperties;
    use std::sync::Arc;
    let temporary = room();
    let batch = RecordBatch::try_from_iter([
        ("qid", Arc::new(StringArray::from(vec!["1", "1"])) as ArrayRef),
        ("label", Arc::new(Int64Array::from(vec![0, 1]))),
        ("a", Arc::new(Float32Array::from(vec![0.5, 0.25]))),
        ("day", Arc::new(Int64Array::from(vec![7, 8]))),
        ("__index_level_0__", Arc::new(Int64Array::from(vec![10, 11]))),
    ])
    .unwrap();
    let pandas = |index: &str| {
        let entry =
            KeyValue::new("pandas".to_owned(), format!("{{\"index_columns\": {index}, \"columns\": []}}"));
        let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![entry])).build();
        let file = fs::File::create(temporary.path().join("in.parquet")).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    };
    let features = |options: &str| {
        let ran =
            run(temporary.path(), &format!("convert in.parquet --output out --overwrite {options}")).ok();
        let manifest = fs::read(temporary.path().join("out/_manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
        (manifest["features"].to_string(), ran.stderr)
    };
    pandas(r#"["__index_level_0__", "day", "qid"]"#);
    let (names, stderr) = features("");
    assert_eq!(names, r#"["a"]"#);
    let note = "note: skipping day, __index_level_0__: index of a data frame (--keep-columns keeps it)\n";
    assert!(stderr.starts_with(note), "{stderr}");
    assert_eq!(features("--keep-columns day").0, r#"["a","day"]"#);
    assert_eq!(features("--weight-column day").0, r#"["a"]"#);
    // A range index is metadata, not a column.
    pandas(r#"[{"kind": "range", "name": null, "start": 0, "stop": 2, "step": 1}]"#);
    assert_eq!(features("").0, r#"["a","day"]"#);
    let ran = run(temporary.path(), "convert in.parquet --output out --overwrite --keep-columns dya");
    assert!(ran.code == 2 && ran.stderr.contains("there is no column \"dya\""), "{}", ran.stderr);
}

#[test]
fn features_that_look_like_identifiers_cause_a_warning() {
    let temporary = room();
    let rows = |line: fn(usize) -> String| (0..40).map(line).collect::<String>();
    write(
        temporary.path(),
        "ids.csv",
        format!(
            "qid,label,product_id,price,url,n\n{}",
            rows(|row| format!(
                "{},{},{},{},page{row}.html,{row}\n",
                row / 10,
                row % 3,
                row * 7919 % 1009,
                row % 5
            ))
        ),
    );
    let ran = run(temporary.path(), "convert ids.csv --output ids").ok();
    let warning = "warning: product_id, url, n look like identifiers, which a model can memorise; skip them with --ignore-columns product_id,url,n\n";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    let ran = run(temporary.path(), "convert ids.csv --output left --ignore-columns product_id,url,n").ok();
    assert!(!ran.stderr.contains("identifier"), "{}", ran.stderr);
    // No warning for ordinary data.
    run(temporary.path(), "sample --shape mslr --rows 2000 --output sample").ok();
    let ran = run(temporary.path(), "convert sample/train.txt --output sampled").ok();
    assert!(!ran.stderr.contains("identifier"), "{}", ran.stderr);
}
