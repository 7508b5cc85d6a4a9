//! Every fault of an input results in one message with the file, line, column, what was found, what was
//! expected and a remedy, and leaves nothing behind.

use crate::support::*;
use std::fs;

/// Runs a conversion that must fail and returns stderr.
fn rejected(text: &[u8], options: &str) -> String {
    let temporary = room();
    fs::write(temporary.path().join("in.txt"), text).unwrap();
    let ran = run(temporary.path(), &format!("convert in.txt --output out {options}")).failed();
    assert_eq!(names_in(temporary.path()), ["in.txt"], "something was left behind");
    ran.stderr
}

fn accepted(text: &[u8], options: &str) -> (Vec<DatasetRow>, String) {
    let temporary = room();
    fs::write(temporary.path().join("in.txt"), text).unwrap();
    let ran = run(temporary.path(), &format!("convert in.txt --output out {options}")).ok();
    (rows_of(&temporary.path().join("out")), ran.stderr)
}

const FIX_LINE: &str = "correct the line, or pass --lenient to skip such lines";
const FIX_VALUE: &str =
    "correct the value, write NULL if it is missing, or pass --lenient to treat it as missing";

#[test]
fn each_fault_has_its_exact_message() {
    let digits = "9".repeat(400);
    let cases: Vec<(String, String, &str)> = vec![
        (
            "1 1:2".into(),
            "2:3: found \"1:2\", expected qid:ID after the label".into(),
            "write lines as `label qid:ID index:value ...`, or put the query sizes next to the file in FILE.query, as LightGBM does",
        ),
        ("1 qid: 1:2".into(), "2:3: found \"qid:\", expected a query id after `qid:`".into(), FIX_LINE),
        ("qid:1 1:2".into(), "2:1: found \"qid:1\", expected a number as the label".into(), FIX_LINE),
        ("good qid:1 1:2".into(), "2:1: found \"good\", expected a number as the label".into(), FIX_LINE),
        (
            "nan qid:1 1:2".into(),
            "2:1: found \"nan\", expected a finite label".into(),
            "write -1 for an unjudged document, or pass --lenient to skip such lines",
        ),
        (
            "-2 qid:1 1:2".into(),
            "2:1: found \"-2\", expected a label of 0 or more, or -1 for an unjudged document".into(),
            "shift the labels to start at 0, or pass --lenient to treat negative labels as unjudged",
        ),
        (
            "1 qid:1 0:2".into(),
            "2:9: found \"0:2\", expected a feature index of 1 or more".into(),
            "pass --index-base 0 if the first feature of this file has index 0",
        ),
        (
            "1 qid:1 1:2 1:3".into(),
            "2:13: found \"1:3\", expected each index at most once per line".into(),
            "remove one of the two, or pass --lenient to use the last one",
        ),
        (
            "1 qid:1 10001:2".into(),
            "2:9: found \"10001:2\", expected an index of at most --max-features".into(),
            "raise --max-features, or complete the --names file, if there really are that many features",
        ),
        (
            "1 qid:1 99999999999999999999:2".into(),
            "2:9: found \"99999999999999999999:2\", expected an index of at most --max-features".into(),
            "raise --max-features, or complete the --names file, if there really are that many features",
        ),
        (
            "1 qid:1 -1:2".into(),
            "2:9: found \"-1:2\", expected a whole number as the feature index".into(),
            FIX_LINE,
        ),
        ("1 qid:1 1:".into(), "2:9: found \"1:\", expected a number after the colon".into(), FIX_VALUE),
        ("1 qid:1 1:2x".into(), "2:11: found \"2x\", expected a decimal number".into(), FIX_VALUE),
        ("1 qid:1 1:0x1F".into(), "2:11: found \"0x1F\", expected a decimal number".into(), FIX_VALUE),
        (
            "1 qid:1 1:1e39".into(),
            "2:11: found \"1e39\", expected a finite number that fits float32 (up to 3.4e38)".into(),
            FIX_VALUE,
        ),
        (
            format!("1 qid:1 1:{digits}"),
            format!(
                "2:11: found \"{}\"..., expected a finite number that fits float32 (up to 3.4e38)",
                &digits[..40]
            ),
            FIX_VALUE,
        ),
        ("1 qid:1 12".into(), "2:9: found \"12\", expected index:value".into(), FIX_LINE),
        (
            "\u{0}\u{1}\u{2}".into(),
            "2:1: found \"\\0\\u{1}\\u{2}\", expected text".into(),
            "check that the file is text, plain or compressed with gzip, bzip2, xz or zstd, or Parquet; decompress other formats first",
        ),
    ];
    for (line, problem, remedy) in cases {
        let message = rejected(format!("0 qid:1 1:1\n{line}\n0 qid:1 1:1\n").as_bytes(), "");
        assert_eq!(message, format!("error: in.txt:{problem}\n  help: {remedy}\n"));
    }
}

#[test]
fn a_repeated_query_reports_both_lines_and_can_be_sorted() {
    let text = b"0 qid:a 1:1\n1 qid:b 1:2\n2 qid:b 1:3\n1 qid:a 1:4\n";
    assert_eq!(
        rejected(text, ""),
        "error: in.txt:4:1: found query \"a\" again, expected all its rows to be consecutive: the first one is at in.txt:1\n  help: sort the input by query, or pass --sort-queries to sort it during the conversion\n"
    );
    let (rows, _) = accepted(text, "--sort-queries");
    let order: Vec<(String, Option<f32>)> =
        rows.into_iter().map(|row| (row.query, row.features[0])).collect();
    let expected = [("a", 1.0), ("a", 4.0), ("b", 2.0), ("b", 3.0)];
    assert_eq!(order, expected.map(|(query, value)| (query.to_owned(), Some(value))));
}

#[test]
fn the_first_fault_is_reported_whichever_thread_finds_it() {
    let mut text = some_text(3000, 20);
    let lines: Vec<usize> = memchr_lines(&text);
    text.replace_range(lines[50_000]..lines[50_000] + 1, "x");
    text.replace_range(lines[20_000]..lines[20_000] + 1, "y");
    for threads in [1, 2, 4] {
        let message = rejected(text.as_bytes(), &format!("--threads {threads}"));
        assert!(message.starts_with("error: in.txt:20001:1: found \"y\""), "{message}");
    }
}

fn memchr_lines(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

#[test]
fn unusual_but_valid_text_is_read() {
    let plain = accepted(b"1 qid:1 1:2 2:3\n0 qid:1 1:4\n", "").0;
    for text in [
        &b"1 qid:1 1:2 2:3\r\n0 qid:1 1:4\r\n"[..],
        b"\xEF\xBB\xBF1 qid:1 1:2 2:3\n0 qid:1 1:4\n",
        b"1\tqid:1\t1:2\t2:3\n0\tqid:1\t1:4\n",
        b"\n\n1 qid:1 2:3 1:2   \n# words\n\n  0 qid:1 1:4 \n\n",
        b"1 qid:1 1:2 2:3\n0 qid:1 1:4",
        b"1.0 qid:1 1:2e0 2:+3\n0 qid:1 1:4 2:NULL 3:NA 4:nan\n",
    ] {
        let (rows, _) = accepted(text, "");
        let width = plain[0].features.len();
        assert_eq!(rows.len(), plain.len());
        for (row, expected) in rows.iter().zip(&plain) {
            assert_eq!(
                (row.label, &row.query, &row.features[..width]),
                (expected.label, &expected.query, &expected.features[..])
            );
            assert!(row.features[width..].iter().all(Option::is_none));
        }
    }
}

#[test]
fn unjudged_and_infinite_values_are_accepted_and_counted() {
    let (rows, stderr) = accepted(b"-1 qid:1 1:inf 2:-inf 3:1\n2.5 qid:1 1:1", "");
    assert_eq!((rows[0].label, rows[1].label), (None, Some(2.5)));
    assert_eq!(rows[0].features, [None, None, Some(1.0)]);
    assert!(stderr.contains("note: 1 row has no label (-1 or empty)"), "{stderr}");
    assert!(stderr.contains("note: 2 x value-infinite: value treated as missing"), "{stderr}");
    assert!(
        stderr.contains("warning: in.txt: no final newline; check that the file is complete"),
        "{stderr}"
    );
}

#[test]
fn lenient_repairs_counts_and_stops_at_max_errors() {
    let text = b"1 qid:1 1:1 1:2\n-7 qid:1 1:1\nrubbish\n0 qid:1 1:x 2:1e99\n0 qid:1 1:5\n";
    let (rows, stderr) = accepted(text, "--lenient");
    assert_eq!(rows.len(), 4);
    assert_eq!((rows[0].features[0], rows[1].label), (Some(2.0), None));
    for count in [
        "1 x label-malformed: line skipped",
        "1 x label-negative: row treated as unlabelled",
        "1 x index-repeated: last value used",
        "1 x value-malformed: value treated as missing",
        "1 x value-too-large: value treated as missing",
    ] {
        assert!(stderr.contains(&format!("note: {count}\n")), "{count} in {stderr}");
    }
    let message = rejected(text, "--lenient --max-errors 4");
    assert!(
        message.starts_with("error: input: more than 4 faults: 1 label-malformed, 1 label-negative,"),
        "{message}"
    );
    assert!(message.ends_with("help: correct the input, or raise --max-errors\n"), "{message}");
}

#[test]
fn no_rows_are_an_error() {
    for text in [&b""[..], b"\n\n", b"# nothing\n"] {
        assert_eq!(
            rejected(text, ""),
            "error: in.txt: there are no rows\n  help: pass an input with at least one line of data\n"
        );
    }
}

#[test]
fn a_line_of_a_hundred_megabytes_is_rejected_in_little_memory() {
    let temporary = room();
    let mut text = b"0 qid:1 1:1\n0 qid:1".to_vec();
    text.resize(100 << 20, b'7');
    fs::write(temporary.path().join("in.txt"), &text).unwrap();
    let (stderr, peak) = peak_of(temporary.path(), "convert in.txt --output out");
    assert_eq!(
        stderr,
        "error: in.txt:2:1: found a line of more than 16 MiB, expected shorter lines\n  help: check that this is a text file with line breaks\n"
    );
    assert!(peak < 200, "{peak} MiB");
}

#[test]
fn a_decompression_bomb_is_bounded() {
    use std::io::Write;
    let temporary = room();
    // Endless blank lines and an endless line, compressed a thousandfold.
    for (name, byte, message) in [
        ("lines.gz", b'\n', "error: lines.gz: there are no rows\n"),
        ("line.gz", b'1', "error: line.gz:1:1: found a line of more than 16 MiB, expected shorter lines\n"),
    ] {
        let file = fs::File::create(temporary.path().join(name)).unwrap();
        let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        let piece = vec![byte; 1 << 20];
        (0..256).for_each(|_| gzip.write_all(&piece).unwrap());
        gzip.finish().unwrap();
        let (stderr, peak) = peak_of(temporary.path(), &format!("--quiet convert {name} --output out"));
        assert!(stderr.starts_with(message), "{stderr}");
        assert!(peak < 200, "{peak} MiB");
        assert!(!temporary.path().join("out").exists());
    }
}

#[test]
fn a_truncated_gzip_reports_the_last_line() {
    use std::io::Write;
    let temporary = room();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(some_text(200, 20).as_bytes()).unwrap();
    let bytes = gzip.finish().unwrap();
    fs::write(temporary.path().join("in.gz"), &bytes[..bytes.len() / 2]).unwrap();
    let stderr = run(temporary.path(), "convert in.gz --output out").failed().stderr;
    assert!(stderr.starts_with("error: in.gz: gzip data truncated after "), "{stderr}");
    assert!(stderr.ends_with(" lines\n  help: copy or download the file again\n"), "{stderr}");
    let mut damaged = bytes.clone();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 40].fill(0xA5);
    fs::write(temporary.path().join("in.gz"), damaged).unwrap();
    assert!(
        run(temporary.path(), "convert in.gz --output out").failed().stderr.starts_with("error: in.gz: ")
    );
    assert!(!temporary.path().join("out").exists());
}

#[test]
fn unusable_paths_are_reported() {
    let temporary = room();
    fs::write(temporary.path().join("in.txt"), some_text(2, 2)).unwrap();
    let expect_error = |arguments: &str, expected: &str| {
        let ran = run(temporary.path(), arguments);
        assert!(ran.stderr.starts_with(expected), "{arguments}: {}", ran.stderr);
        assert_ne!(ran.code, 0);
    };
    expect_error(
        "convert none.txt --output out",
        "error: none.txt: cannot open: No such file or directory\n  help: check the spelling of the path\n",
    );
    expect_error("convert none*.txt --output out", "error: none*.txt: no input files found\n");
    expect_error(
        "convert in.txt --output in.txt",
        "error: in.txt: refusing to overwrite: not created by planetree (no _manifest.json)\n  help: choose another --output; --overwrite only replaces outputs of planetree\n",
    );
    expect_error("convert in.txt --output in.txt/out", "error: in.txt/out: cannot create the output: ");
    expect_error(
        "describe none",
        "error: none: no such file or directory\n  help: check the spelling of the path\n",
    );
    expect_error(
        "convert in.txt --output s3://bucket/out",
        "error: s3://bucket/out: no credentials for this store\n  help: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ",
    );
    expect_error(
        "convert in.txt --output gs://bucket/out",
        "error: gs://bucket/out: no credentials for this store\n",
    );
    expect_error(
        "convert az://container/in.txt --output out",
        "error: az://container/in.txt: no credentials for this store\n",
    );
    expect_error(
        "convert in.txt --output out --memory-limit 1MiB",
        "error: --memory-limit 1.0 MiB is too small\n",
    );
    assert_eq!(names_in(temporary.path()), ["in.txt"]);
}

#[test]
fn unreadable_files_and_unwritable_directories_are_rejected() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    if !is_root() {
        impossible_here("only root can drop its rights");
        return;
    }
    let temporary = room();
    fs::set_permissions(temporary.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(temporary.path().join("secret.txt"), some_text(2, 2)).unwrap();
    fs::write(temporary.path().join("in.txt"), some_text(2, 2)).unwrap();
    fs::set_permissions(temporary.path().join("secret.txt"), fs::Permissions::from_mode(0o600)).unwrap();
    // The temporary directory may be below a home directory that other users cannot enter.
    let binary = temporary.path().join("planetree");
    fs::copy(BINARY, &binary).unwrap();
    let as_nobody = |input: &str| {
        let mut command = std::process::Command::new(&binary);
        command.current_dir(temporary.path()).args(["convert", input, "--output", "out"]);
        command.uid(65534).gid(65534);
        let output = loop {
            match command.output() {
                // A process that another test is just starting may have inherited the copy, open for writing.
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                output => break output.unwrap(),
            }
        };
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(
        as_nobody("secret.txt"),
        "error: secret.txt: cannot open: Permission denied\n  help: check the permissions, or choose another location\n"
    );
    assert_eq!(
        as_nobody("in.txt"),
        "error: out: cannot create the output: Permission denied\n  help: check the permissions, or choose another location\n"
    );
}

#[test]
fn a_query_too_large_for_memory_is_reported() {
    let mut text = String::new();
    for row in 0..400_000 {
        text.push_str(&format!("0 qid:huge 1:{row}"));
        (2..60).for_each(|feature| text.push_str(&format!(" {feature}:1")));
        text.push('\n');
    }
    let message = rejected(text.as_bytes(), "--memory-limit 192MiB");
    assert!(message.starts_with("error: query \"huge\": the first "), "{message}");
    assert!(message.ends_with("help: raise --memory-limit\n"), "{message}");
}

#[test]
fn invalid_usage_exits_with_code_2_and_a_hint() {
    let temporary = room();
    fs::write(temporary.path().join("in.csv"), "a,b,c\n1,2,3\n").unwrap();
    for (arguments, hint) in [
        ("convert in.csv", "--output <DATASET>"),
        ("convert in.csv --output out --formt csv", "--format"),
        ("convert in.csv --output out --index-base 2", "0..=1"),
        ("convert in.csv --output out", "choose one with --query-column; the columns are a, b, c"),
        (
            "convert in.csv --output out --label-column a",
            "choose one with --query-column; the columns are a, b, c",
        ),
        ("convert in.csv --output out --label-column z", "there is no column \"z\""),
        ("convert in.csv --output out --max-errors 3", "--lenient"),
        ("convert ftp://x/y --output out", "s3://"),
    ] {
        let ran = run(temporary.path(), arguments);
        assert_eq!(ran.code, 2, "{arguments}: {}", ran.stderr);
        assert!(ran.stderr.contains(hint), "{arguments}: {}", ran.stderr);
    }
}

#[test]
fn catalogue_faults_are_handled_as_expected() {
    let Some(inputs) = shared("faults/inputs") else { return };
    let expected = fs::read_to_string(inputs.join("expected.tsv")).unwrap();
    let mut agreed = 0;
    for line in expected.lines() {
        let mut fields = line.split('\t');
        let (name, outcome) = (fields.next().unwrap(), fields.next().unwrap());
        let temporary = room();
        let input = inputs.join(name);
        let ran = run(temporary.path(), &format!("convert {} --output out", input.display()));
        assert_eq!(if ran.code == 0 { "ok" } else { "error" }, outcome, "{name}: {}", ran.stderr);
        assert_eq!(names_in(temporary.path()), if outcome == "ok" { vec!["out"] } else { vec![] }, "{name}");
        assert!(
            outcome == "ok" || ran.stderr.starts_with("error: ") || ran.stderr.contains("\nerror: "),
            "{name}: {}",
            ran.stderr
        );
        agreed += 1;
    }
    assert_eq!(agreed, expected.lines().count());
    eprintln!("{agreed} of {agreed} as expected");
}

#[test]
fn carriage_returns_and_utf_16_are_named() {
    let text = some_text(3, 4);
    let message = rejected(text.replace('\n', "\r").as_bytes(), "");
    assert!(message.contains("in.txt: the lines end in carriage returns (CR) only\n  help: "), "{message}");
    let csv = "query_id,label,f1\rq1,1,0.5\rq1,0,0.25\r";
    assert!(rejected(csv.as_bytes(), "").contains("carriage returns (CR) only"));
    for (mark, is_little) in [(true, true), (true, false), (false, true), (false, false)] {
        let text = if mark { format!("\u{feff}{text}") } else { text.clone() };
        let unit = |unit: u16| if is_little { unit.to_le_bytes() } else { unit.to_be_bytes() };
        let bytes: Vec<u8> = text.encode_utf16().flat_map(unit).collect();
        let message = rejected(&bytes, "");
        assert!(
            message.contains("in.txt: the text is encoded as UTF-16\n  help: convert it to UTF-8"),
            "{message}"
        );
    }
    accepted(text.replace('\n', "\r\n").as_bytes(), "");
    let room = room();
    let utf_16: Vec<u8> = "query_id,label\nq1,1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(room.path().join("in.csv"), utf_16).unwrap();
    let stderr = sql::sql_in(room.path(), "", "SELECT * FROM 'in.csv'", &[]).failed().stderr;
    assert!(stderr.contains("in.csv: the text is encoded as UTF-16"), "{stderr}");
    fs::write(room.path().join("a.run"), "1 Q0 d1 1 5 t\r1 Q0 d2 2 4 t\r").unwrap();
    fs::write(room.path().join("a.qrels"), "1 0 d1 1\n1 0 d2 0\n").unwrap();
    let stderr = run(room.path(), "evaluate --run a.run --qrels a.qrels").failed().stderr;
    assert!(stderr.contains("a.run: the lines end in carriage returns (CR) only"), "{stderr}");
}
