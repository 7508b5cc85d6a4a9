//! Every fault of an input ends in one message that names file, line, column, what was found, what
//! was expected and what to do, and leaves nothing behind.

use crate::support::*;
use std::fs;

/// Converts text that must fail, and returns stderr.
fn refused(text: &[u8], options: &str) -> String {
    let room = room();
    fs::write(room.path().join("in.txt"), text).unwrap();
    let ran = run(room.path(), &format!("convert in.txt --output out {options}")).failed();
    assert_eq!(names_in(room.path()), ["in.txt"], "something was left behind");
    ran.stderr
}

fn accepted(text: &[u8], options: &str) -> (Vec<Row>, String) {
    let room = room();
    fs::write(room.path().join("in.txt"), text).unwrap();
    let ran = run(room.path(), &format!("convert in.txt --output out {options}")).ok();
    (rows_of(&room.path().join("out")), ran.stderr)
}

const FIX_LINE: &str = "correct the line, or pass --lenient to leave such lines out";
const FIX_VALUE: &str =
    "correct the value, write NULL if it is missing, or pass --lenient to take it as missing";

#[test]
fn each_fault_has_its_exact_message() {
    let digits = "9".repeat(400);
    let cases: Vec<(String, String, &str)> = vec![
        (
            "1 1:2".into(),
            "2:3: found \"1:2\", expected qid:ID after the label".into(),
            "write lines as `label qid:ID index:value ...`, or put the sizes of the queries beside the file in FILE.query as LightGBM does",
        ),
        ("1 qid: 1:2".into(), "2:3: found \"qid:\", expected a query id behind `qid:`".into(), FIX_LINE),
        ("qid:1 1:2".into(), "2:1: found \"qid:1\", expected a number as the label".into(), FIX_LINE),
        ("good qid:1 1:2".into(), "2:1: found \"good\", expected a number as the label".into(), FIX_LINE),
        (
            "nan qid:1 1:2".into(),
            "2:1: found \"nan\", expected a finite label".into(),
            "write -1 for a document that nobody judged, or pass --lenient to leave such lines out",
        ),
        (
            "-2 qid:1 1:2".into(),
            "2:1: found \"-2\", expected a label of 0 or more, or -1 for an unjudged document".into(),
            "shift the labels to start at 0, or pass --lenient to take negative labels as unjudged",
        ),
        (
            "1 qid:1 0:2".into(),
            "2:9: found \"0:2\", expected feature indices from 1 on".into(),
            "pass --index-base 0 if the first feature of this file has index 0",
        ),
        (
            "1 qid:1 1:2 1:3".into(),
            "2:13: found \"1:3\", expected every index once in a line".into(),
            "remove one of the two, or pass --lenient to take the last one",
        ),
        (
            "1 qid:1 10001:2".into(),
            "2:9: found \"10001:2\", expected an index within --max-features".into(),
            "raise --max-features, or complete the file of --names, if there really are that many features",
        ),
        (
            "1 qid:1 99999999999999999999:2".into(),
            "2:9: found \"99999999999999999999:2\", expected an index within --max-features".into(),
            "raise --max-features, or complete the file of --names, if there really are that many features",
        ),
        (
            "1 qid:1 -1:2".into(),
            "2:9: found \"-1:2\", expected a whole number as the feature's index".into(),
            FIX_LINE,
        ),
        ("1 qid:1 1:".into(), "2:9: found \"1:\", expected a number behind the colon".into(), FIX_VALUE),
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
            "check that this is a text file, gzip, bzip2, xz, zstd or Parquet; other packings must be unpacked first",
        ),
    ];
    for (line, problem, remedy) in cases {
        let message = refused(format!("0 qid:1 1:1\n{line}\n0 qid:1 1:1\n").as_bytes(), "");
        assert_eq!(message, format!("error: in.txt:{problem}\n  help: {remedy}\n"));
    }
}

#[test]
fn a_query_that_returns_names_both_lines_and_can_be_gathered() {
    let text = b"0 qid:a 1:1\n1 qid:b 1:2\n2 qid:b 1:3\n1 qid:a 1:4\n";
    assert_eq!(
        refused(text, ""),
        "error: in.txt:4:1: found query \"a\" again, expected its rows together: they began at in.txt:1\n  help: sort the input by query, or pass --sort-queries to gather the rows of each query\n"
    );
    let (rows, _) = accepted(text, "--sort-queries");
    let order: Vec<(String, Option<f32>)> =
        rows.into_iter().map(|row| (row.query, row.features[0])).collect();
    let expected = [("a", 1.0), ("a", 4.0), ("b", 2.0), ("b", 3.0)];
    assert_eq!(order, expected.map(|(query, value)| (query.to_owned(), Some(value))));
}

#[test]
fn the_first_fault_of_the_input_is_reported_whatever_thread_finds_it() {
    let mut text = some_text(3000, 20);
    let lines: Vec<usize> = memchr_lines(&text);
    text.replace_range(lines[50_000]..lines[50_000] + 1, "x");
    text.replace_range(lines[20_000]..lines[20_000] + 1, "y");
    for threads in [1, 2, 4] {
        let message = refused(text.as_bytes(), &format!("--threads {threads}"));
        assert!(message.starts_with("error: in.txt:20001:1: found \"y\""), "{message}");
    }
}

fn memchr_lines(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

#[test]
fn odd_but_harmless_text_is_read() {
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
fn unjudged_infinite_and_unfinished_are_accepted_and_counted() {
    let (rows, stderr) = accepted(b"-1 qid:1 1:inf 2:-inf 3:1\n2.5 qid:1 1:1", "");
    assert_eq!((rows[0].label, rows[1].label), (None, Some(2.5)));
    assert_eq!(rows[0].features, [None, None, Some(1.0)]);
    assert!(stderr.contains("note: 1 row has no label (written as -1 or left empty)"), "{stderr}");
    assert!(stderr.contains("note: 2 x value-infinite: value taken as missing"), "{stderr}");
    assert!(stderr.contains("WARN in.txt: no final newline; check that the file is whole"), "{stderr}");
}

#[test]
fn lenient_repairs_counts_and_gives_up_when_told() {
    let text = b"1 qid:1 1:1 1:2\n-7 qid:1 1:1\nrubbish\n0 qid:1 1:x 2:1e99\n0 qid:1 1:5\n";
    let (rows, stderr) = accepted(text, "--lenient");
    assert_eq!(rows.len(), 4);
    assert_eq!((rows[0].features[0], rows[1].label), (Some(2.0), None));
    for count in [
        "1 x label-malformed: line left out",
        "1 x label-negative: taken as unlabelled",
        "1 x index-repeated: last value taken",
        "1 x value-malformed: value taken as missing",
        "1 x value-too-large: value taken as missing",
    ] {
        assert!(stderr.contains(&format!("note: {count}\n")), "{count} in {stderr}");
    }
    let message = refused(text, "--lenient --max-errors 4");
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
            refused(text, ""),
            "error: in.txt: there are no rows\n  help: name an input with at least one line of data\n"
        );
    }
}

#[test]
fn a_line_of_a_hundred_megabytes_is_refused_in_little_memory() {
    let room = room();
    let mut text = b"0 qid:1 1:1\n0 qid:1".to_vec();
    text.resize(100 << 20, b'7');
    fs::write(room.path().join("in.txt"), &text).unwrap();
    let (stderr, peak) = peak_of(room.path(), "convert in.txt --output out");
    assert_eq!(
        stderr,
        "error: in.txt:2:1: found a line of more than 16 MiB, expected lines of text\n  help: check that this is a text file with line ends\n"
    );
    assert!(peak < 200, "{peak} MiB");
}

#[test]
fn a_decompression_bomb_is_bounded() {
    use std::io::Write;
    let room = room();
    // Blank lines without end, and a line without end, packed a thousand to one.
    for (name, byte, message) in [
        ("lines.gz", b'\n', "error: lines.gz: there are no rows\n"),
        ("line.gz", b'1', "error: line.gz:1:1: found a line of more than 16 MiB, expected lines of text\n"),
    ] {
        let file = fs::File::create(room.path().join(name)).unwrap();
        let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        let piece = vec![byte; 1 << 20];
        (0..256).for_each(|_| gzip.write_all(&piece).unwrap());
        gzip.finish().unwrap();
        let (stderr, peak) = peak_of(room.path(), &format!("--quiet convert {name} --output out"));
        assert!(stderr.starts_with(message), "{stderr}");
        assert!(peak < 200, "{peak} MiB");
        assert!(!room.path().join("out").exists());
    }
}

#[test]
fn a_truncated_gzip_says_how_far_it_got() {
    use std::io::Write;
    let room = room();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(some_text(200, 20).as_bytes()).unwrap();
    let bytes = gzip.finish().unwrap();
    fs::write(room.path().join("in.gz"), &bytes[..bytes.len() / 2]).unwrap();
    let stderr = run(room.path(), "convert in.gz --output out").failed().stderr;
    assert!(stderr.starts_with("error: in.gz: the gzip data end early, after "), "{stderr}");
    assert!(
        stderr.ends_with(" lines\n  help: the file is truncated or damaged: copy or download it again\n"),
        "{stderr}"
    );
    let mut damaged = bytes.clone();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 40].fill(0xA5);
    fs::write(room.path().join("in.gz"), damaged).unwrap();
    assert!(run(room.path(), "convert in.gz --output out").failed().stderr.starts_with("error: in.gz: "));
    assert!(!room.path().join("out").exists());
}

#[test]
fn paths_that_cannot_be_used_are_named() {
    let room = room();
    fs::write(room.path().join("in.txt"), some_text(2, 2)).unwrap();
    let says = |arguments: &str, expected: &str| {
        let ran = run(room.path(), arguments);
        assert!(ran.stderr.starts_with(expected), "{arguments}: {}", ran.stderr);
        assert_ne!(ran.code, 0);
    };
    says(
        "convert none.txt --output out",
        "error: none.txt: cannot open: No such file or directory\n  help: check the spelling of the path\n",
    );
    says("convert none*.txt --output out", "error: none*.txt: nothing to read here\n");
    says(
        "convert in.txt --output in.txt",
        "error: in.txt: refusing to overwrite: not created by planetree (no _manifest.json)\n  help: choose another --output; --overwrite only replaces outputs of planetree\n",
    );
    says("convert in.txt --output in.txt/out", "error: in.txt/out: cannot create the output: ");
    says("describe none", "error: none: not a planetree dataset: it has no _manifest.json\n");
    says(
        "convert in.txt --output s3://bucket/out",
        "error: s3://bucket/out: no credentials for this store\n  help: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ",
    );
    says(
        "convert in.txt --output gs://bucket/out",
        "error: gs://bucket/out: no credentials for this store\n",
    );
    says(
        "convert az://container/in.txt --output out",
        "error: az://container/in.txt: no credentials for this store\n",
    );
    says("convert in.txt --output out --memory-limit 1MiB", "error: --memory-limit 1 MiB is too small\n");
    assert_eq!(names_in(room.path()), ["in.txt"]);
}

#[test]
fn unreadable_files_and_unwritable_places_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    if !is_root() {
        impossible_here("only root can drop its rights");
        return;
    }
    let room = room();
    fs::set_permissions(room.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(room.path().join("secret.txt"), some_text(2, 2)).unwrap();
    fs::write(room.path().join("in.txt"), some_text(2, 2)).unwrap();
    fs::set_permissions(room.path().join("secret.txt"), fs::Permissions::from_mode(0o600)).unwrap();
    // The target folder may be below a home that others cannot enter.
    let binary = room.path().join("planetree");
    fs::copy(BINARY, &binary).unwrap();
    let as_nobody = |input: &str| {
        let output = std::process::Command::new(&binary)
            .current_dir(room.path())
            .args(["convert", input, "--output", "out"])
            .uid(65534)
            .gid(65534)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(
        as_nobody("secret.txt"),
        "error: secret.txt: cannot open: Permission denied\n  help: check the permissions, or choose another place\n"
    );
    assert_eq!(
        as_nobody("in.txt"),
        "error: out: cannot create the output: Permission denied\n  help: check the permissions, or choose another place\n"
    );
}

#[test]
fn a_query_too_large_for_memory_is_named() {
    let mut text = String::new();
    for row in 0..400_000 {
        text.push_str(&format!("0 qid:huge 1:{row}"));
        (2..60).for_each(|feature| text.push_str(&format!(" {feature}:1")));
        text.push('\n');
    }
    let message = refused(text.as_bytes(), "--memory-limit 192MiB");
    assert!(message.starts_with("error: query \"huge\": its "), "{message}");
    assert!(message.ends_with("help: raise --memory-limit\n"), "{message}");
}

#[test]
fn misuse_ends_with_code_2_and_a_hint() {
    let room = room();
    fs::write(room.path().join("in.csv"), "a,b,c\n1,2,3\n").unwrap();
    for (arguments, hint) in [
        ("convert in.csv", "--output <DATASET>"),
        ("convert in.csv --output out --formt csv", "--format"),
        ("convert in.csv --output out --index-base 2", "0..=1"),
        ("convert in.csv --output out", "say which with --label-column; the columns are a, b, c"),
        (
            "convert in.csv --output out --label-column a",
            "say which with --query-column; the columns are a, b, c",
        ),
        ("convert in.csv --output out --label-column z", "there is no column \"z\""),
        ("convert in.csv --output out --max-errors 3", "--lenient"),
        ("convert ftp://x/y --output out", "s3://"),
    ] {
        let ran = run(room.path(), arguments);
        assert_eq!(ran.code, 2, "{arguments}: {}", ran.stderr);
        assert!(ran.stderr.contains(hint), "{arguments}: {}", ran.stderr);
    }
}

#[test]
fn the_catalogue_of_faults_ends_as_expected() {
    let Some(inputs) = shared("faults/inputs") else { return };
    let expected = fs::read_to_string(inputs.join("expected.tsv")).unwrap();
    let mut agreed = 0;
    for line in expected.lines() {
        let mut fields = line.split('\t');
        let (name, outcome) = (fields.next().unwrap(), fields.next().unwrap());
        let room = room();
        let input = inputs.join(name);
        let ran = run(room.path(), &format!("convert {} --output out", input.display()));
        assert_eq!(if ran.code == 0 { "ok" } else { "error" }, outcome, "{name}: {}", ran.stderr);
        assert_eq!(names_in(room.path()), if outcome == "ok" { vec!["out"] } else { vec![] }, "{name}");
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
